// Command placing produces keys with sarama's own partitioner and tells what became of them: see placing.go of package interop.
package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/IBM/sarama"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(bootstrap string, topics []string) error {
	c := sarama.NewConfig() // all that matters here is its default
	c.Producer.Return.Successes = true
	p, err := sarama.NewSyncProducer([]string{bootstrap}, c)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		key, err := hex.DecodeString(lines.Text())
		if err != nil {
			return errors.Join(err, p.Close())
		}
		for _, topic := range topics {
			at, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Key: sarama.ByteEncoder(key)})
			if err != nil && !errors.Is(err, sarama.ErrInvalidRecord) {
				return errors.Join(err, p.Close())
			}
			fmt.Printf("%s\t%x\t%d\t%t\n", topic, key, at, err == nil)
		}
	}
	return p.Close()
}
