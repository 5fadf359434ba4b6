// Command example is the program in the README: a page that each address may read as often as the policy api says.
package main

import (
	"context"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/cellserver/cellserver/clients/go/httplimit"
	"github.com/cellserver/cellserver/clients/go/limit"
)

func main() {
	limiter, err := limit.New(context.Background(), limit.Options{
		URL:           os.Getenv("CELLSERVER_URL"), // such as redis://limits:6379
		Policy:        "api",
		OnUnavailable: limit.Allow,
	})
	if err != nil {
		log.Fatal(err)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })

	limited := httplimit.Middleware(limiter, httplimit.IP())(hello)

	listener, err := net.Listen("tcp", os.Getenv("LISTEN")) // such as :8080
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listening on ", listener.Addr())
	log.Fatal(http.Serve(listener, limited))
}
