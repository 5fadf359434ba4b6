module example.com/extension

go 1.26.0

require github.com/cellserver/cellserver v0.0.0

replace github.com/cellserver/cellserver => ../..
