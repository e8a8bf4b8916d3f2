// prices PORT RATES_PORT: says what an item costs, with the taxes of the day.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"example.org/relay/work/relay"
)

//go:generate pptc --emit go -o ../work/relay ../relay.frame

// prices has connections to the rates that no question uses.
type prices struct {
	rates string
	idle  chan net.Conn
}

func (service *prices) ServeHTTP(answer http.ResponseWriter, question *http.Request) {
	scope := relay.StartPricesGave()
	id, known := traceID(question.Header.Get("traceparent"))
	if !known {
		http.Error(answer, "no traceparent", http.StatusBadRequest)
		return
	}
	relay.WritePricesTook(relay.PricesTook{Trace: id})
	rate, err := service.rate(id, question.URL.Path)
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadGateway)
		return
	}
	cents := (100 + len(question.URL.Path)) * (1000 + rate) / 1000
	text := fmt.Sprintf("%d cents\n", cents)
	answer.Header().Set("Content-Length", strconv.Itoa(len(text)))
	// A point comes before what it leads to: the frame before the answer.
	scope.End(relay.PricesGave{Trace: id, Cents: uint32(cents)})
	io.WriteString(answer, text)
}

// rate asks by a line for the tax of an item, in thousandths.
func (service *prices) rate(id [16]byte, item string) (int, error) {
	var connection net.Conn
	select {
	case connection = <-service.idle:
	default:
		var err error
		if connection, err = net.Dial("tcp", service.rates); err != nil {
			return 0, err
		}
	}
	if _, err := fmt.Fprintf(connection, "%x %s\n", id, item); err != nil {
		connection.Close()
		return 0, err
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		connection.Close()
		return 0, err
	}
	select {
	case service.idle <- connection:
	default:
		connection.Close()
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

// traceID returns the bytes of the identity in a header of W3C's Trace Context.
func traceID(header string) (id [16]byte, known bool) {
	if len(header) < 35 {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(header[3:35]))
	return id, err == nil
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: prices PORT RATES_PORT"))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fail(err)
	}
	fmt.Println("port", listener.Addr().(*net.TCPAddr).Port)
	fail(http.Serve(listener, &prices{"127.0.0.1:" + os.Args[2], make(chan net.Conn, 64)}))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "prices:", err)
	os.Exit(1)
}
