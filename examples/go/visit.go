package main

import (
	"fmt"
	"io"
	"net/http"
)

// visit counts the answers that all customers got.
func visit(port, customers, requests int) (int, error) {
	type result struct {
		answers int
		err     error
	}
	results := make(chan result)
	for who := 0; who < customers; who++ {
		go func(who int) {
			answers, err := customer(port, who, requests)
			results <- result{answers, err}
		}(who)
	}
	answers := 0
	for i := 0; i < customers; i++ {
		one := <-results
		if one.err != nil {
			return answers, one.err
		}
		answers += one.answers
	}
	return answers, nil
}

func customer(port, who, requests int) (int, error) {
	client := &http.Client{Transport: &http.Transport{}}
	answers := 0
	for i := 0; i < requests; i++ {
		path := fmt.Sprintf("price/item-%d", (who*7+i)%100)
		if i%4 == 3 {
			path = fmt.Sprintf("order/item-%d/%d", (who*7+i)%100, 1+i%9)
		}
		answer, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/%s", port, path))
		if err != nil {
			return answers, err
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return answers, err
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			answers++
		}
	}
	return answers, nil
}
