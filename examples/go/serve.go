package main

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.org/shop/work/shop"
)

// prices is the price list, which is read again after every 200th question.
type prices struct {
	lock  sync.Mutex
	asked int
	cents map[string]int
}

// reload reads the price list. The mistake: it holds the lock that every question needs.
func (list *prices) reload() {
	scope := shop.StartPriceList()
	list.cents = make(map[string]int)
	for i := 0; i < 100; i++ {
		list.cents[fmt.Sprintf("item-%d", i)] = 100 + i
	}
	time.Sleep(15 * time.Millisecond)
	scope.End(shop.PriceList{Items: uint32(len(list.cents))})
}

func (list *prices) price(item string) int {
	list.lock.Lock()
	defer list.lock.Unlock()
	if list.asked%200 == 0 {
		list.reload()
	}
	list.asked++
	return list.cents[item]
}

func (list *prices) ServeHTTP(answer http.ResponseWriter, question *http.Request) {
	scope := shop.StartRequest()
	frame := shop.Request{Page: shop.PagePrice, Status: http.StatusOK}
	words := strings.Split(question.URL.Path, "/")
	if len(words) < 3 {
		frame.Status = http.StatusNotFound
		http.NotFound(answer, question)
		scope.End(frame)
		return
	}
	frame.Item = words[2]
	total := list.price(frame.Item)
	if words[1] == "order" && len(words) == 4 {
		count, _ := strconv.Atoi(words[3])
		frame.Page = shop.PageOrder
		shop.AddOrdered(uint64(count))
		shop.ObserveOrderSize(uint32(count))
		total = list.price(frame.Item) * count
	}
	bytes, _ := fmt.Fprintln(answer, total)
	frame.Bytes = uint32(bytes)
	scope.End(frame)
}

func serve(port int) error {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	return http.Serve(listener, &prices{})
}
