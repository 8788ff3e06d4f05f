package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"convls/client"
	"convls/protocol"
)

// explain says what went wrong and what to do next.
func explain(err error) string {
	switch {
	case errors.Is(err, client.ErrClosed):
		return "the server is gone: /restart starts it again; everything that was said is kept"
	case errors.Is(err, context.Canceled):
		return "it was stopped; what had arrived is kept"
	case errors.Is(err, context.DeadlineExceeded):
		return "the server did not answer in time: try again"
	}
	refused, ok := errors.AsType[*protocol.Error](err)
	if !ok {
		return err.Error()
	}
	return withHint(refused.Message, hint(refused))
}

// hint is the next step after a refusal; empty where the message says it.
func hint(e *protocol.Error) string {
	switch e.Code {
	case protocol.CodeStaleHead:
		return "the conversation went on elsewhere; look at it, then send again"
	case protocol.CodeUnknownModel:
		return "/model lists the models"
	case protocol.CodeUnknownBranch:
		return "/branches lists the branches"
	case protocol.CodeNameConflict:
		return "choose another name"
	case protocol.CodeTurnRunning:
		return "/cancel stops the answer"
	case protocol.CodeBusy:
		return "try again in a moment"
	case protocol.CodeDiskFull:
		return "make room, then send again"
	}
	return ""
}

// explainNode says why an answer failed and what to do next.
func explainNode(e *protocol.NodeError) string {
	if e == nil {
		return "the answer failed: /retry answers again"
	}
	next := e.Hint
	if next == "" {
		switch {
		case e.Code == protocol.CodeContextOverflow:
			next = "/rewind to shorten the conversation, or choose a /model with a larger window"
		case e.Retryable:
			next = "/retry answers again"
		default:
			next = "/retry answers again, /model chooses another model"
		}
	}
	return withHint(e.Message, next)
}

func withHint(message, next string) string {
	message = strings.TrimRight(message, ". \n")
	if next == "" || strings.Contains(message, next) {
		return message
	}
	return fmt.Sprintf("%s (%s)", message, next)
}

// endingError is the error of a turn that ended without a complete answer.
func endingError(e ending) error {
	switch e.status {
	case protocol.StatusSealed:
		return nil
	case protocol.StatusCancelled:
		return errors.New("the answer was stopped before it was complete")
	case protocol.StatusInterrupted:
		return errors.New("the server ended while it was answering: /retry answers again")
	default:
		return errors.New(explainNode(e.err))
	}
}
