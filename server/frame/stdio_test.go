package frame

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
)

// TestStdioChild is not a test: TestStdio runs it in a process of its own.
func TestStdioChild(t *testing.T) {
	if os.Getenv("CONVLS_TEST_STDIO") == "" {
		t.Skip("runs in a child process")
	}
	conn, err := Stdio()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("stray print")
	s := New(conn, Options{})
	body, _, err := s.ReadFrame(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), body); err != nil {
		t.Fatal(err)
	}
	// The parent keeps its end of the input open: Close must end the read.
	reading := make(chan struct{})
	go func() {
		s.ReadFrame(t.Context())
		close(reading)
	}()
	s.Close()
	<-s.Done()
	<-reading
	os.Exit(0)
}

// Close returns with the input still open, and nothing but frames reaches
// standard output (library trap 3).
func TestStdio(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestStdioChild$")
	cmd.Env = append(os.Environ(), "CONVLS_TEST_STDIO=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := io.WriteString(in, framed(ping)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if string(got) != framed(ping) {
		t.Errorf("standard output is %q", got)
	}
	if !strings.Contains(stderr.String(), "stray print") {
		t.Errorf("standard error is %q", stderr.String())
	}
}

func TestFeedIsInterruptible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, w := io.Pipe()
		r := feed(src)
		go io.WriteString(w, "abc")
		buf := make([]byte, 3)
		if _, err := io.ReadFull(r, buf); err != nil || string(buf) != "abc" {
			t.Fatalf("%q, %v", buf, err)
		}
		ended := make(chan error)
		go func() {
			_, err := r.Read(buf)
			ended <- err
		}()
		synctest.Wait()
		r.Close()
		if err := <-ended; err == nil {
			t.Error("the read ended without an error")
		}
		w.Close()
	})
}
