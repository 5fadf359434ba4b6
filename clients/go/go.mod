module github.com/cellserver/cellserver/clients/go

go 1.26.0
