package neovim

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tinylib/msgp/msgp"
)

// The kinds of messages of MessagePack RPC.
const (
	kindRequest      = 0
	kindResponse     = 1
	kindNotification = 2
)

// errEnded is the error of calls that the end of the process left open.
var errEnded = errors.New("neovim has ended")

// rpc is a connection to a Neovim. The requests that Neovim sends are refused:
// tests declare none.
type rpc struct {
	notify func(method string, params []any)

	mu      sync.Mutex
	out     *msgp.Writer
	serial  int64
	pending map[int64]chan reply
	done    chan struct{}
}

type reply struct {
	result any
	err    error
}

// newRPC serves a connection until in ends. notify is called for each
// notification, in order.
func newRPC(in io.Reader, out io.Writer, notify func(string, []any)) *rpc {
	c := &rpc{notify: notify, out: msgp.NewWriter(out), pending: map[int64]chan reply{}, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		// The end of the process ends the loop; what it said is of no interest.
		_ = c.read(msgp.NewReader(in))
	}()
	return c
}

func (c *rpc) read(in *msgp.Reader) error {
	for {
		v, err := in.ReadIntf()
		if err != nil {
			return fmt.Errorf("read from neovim: %w", err)
		}
		message, ok := v.([]any)
		if !ok || len(message) < 3 {
			return fmt.Errorf("read from neovim: no message: %v", v)
		}
		switch whole(message[0]) {
		case kindResponse:
			r := reply{result: message[3]}
			if message[2] != nil {
				r = reply{err: fmt.Errorf("neovim: %v", message[2])}
			}
			c.mu.Lock()
			waiting := c.pending[whole(message[1])]
			delete(c.pending, whole(message[1]))
			c.mu.Unlock()
			if waiting != nil {
				waiting <- r
			}
		case kindNotification:
			method, _ := message[1].(string)
			params, _ := message[2].([]any)
			c.notify(method, params)
		case kindRequest:
			if err := c.write([]any{kindResponse, message[1], "the test answers no requests", nil}); err != nil {
				return err
			}
		}
	}
}

func (c *rpc) write(message []any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.out.WriteIntf(message); err != nil {
		return fmt.Errorf("write to neovim: %w", err)
	}
	if err := c.out.Flush(); err != nil {
		return fmt.Errorf("write to neovim: %w", err)
	}
	return nil
}

// call sends a request and waits for the reply until stop is closed.
func (c *rpc) call(stop <-chan struct{}, method string, params ...any) (any, error) {
	if params == nil {
		params = []any{}
	}
	c.mu.Lock()
	c.serial++
	id, waiting := c.serial, make(chan reply, 1)
	c.pending[id] = waiting
	c.mu.Unlock()
	if err := c.write([]any{kindRequest, id, method, params}); err != nil {
		return nil, err
	}
	select {
	case r := <-waiting:
		return r.result, r.err
	case <-c.done:
		return nil, errEnded
	case <-stop:
		return nil, fmt.Errorf("neovim did not answer %s", method)
	}
}

// whole returns a number that came over the wire.
func whole(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case uint64:
		return int64(v)
	}
	return -1
}
