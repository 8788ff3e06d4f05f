package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Command returns `convls chat`. serverArgs are the arguments with which this
// program starts as a server, and warning is a line about the settings, "" if there
// is nothing to say; both are asked for when the flags are known.
func Command(serverArgs func() []string, warning func() (string, error)) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "chat [message]",
		Short: "Chat in the terminal",
		Long: "Chat in the terminal, with a server of its own. Every message, answer and version is kept; /help lists what can be done.\n\n" +
			"Where standard input or output is no terminal, each line of input is a message (or a command), and the answers are printed as they come. " +
			"The exit status is 1 if a message got no complete answer.",
		Example: "  convls chat\n" +
			"  convls chat --continue\n" +
			"  convls chat --once \"What does SIGHUP do?\"\n" +
			"  git diff | convls chat --once \"Review this\" --attach-file -\n" +
			"  echo hi | convls chat",
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Message = strings.Join(args, " ")
			if err := o.check(); err != nil {
				return err
			}
			exe, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			o.Server = append([]string{exe}, serverArgs()...)
			if o.Warning, err = warning(); err != nil {
				return err
			}
			o.HistoryFile = historyPath()
			if o.Workspace, err = os.Getwd(); err != nil {
				o.Workspace = ""
			}
			if info, ok := debug.ReadBuildInfo(); ok {
				o.Version = info.Main.Version
			}
			o.Stdin, o.Stdout, o.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			// Ctrl-C belongs to the chat: it stops an answer before it ends the program.
			ctx, stop := signal.NotifyContext(context.WithoutCancel(cmd.Context()), syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return Run(ctx, o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Session, "session", "s", "", "open the conversation with this title or id")
	f.BoolVarP(&o.Continue, "continue", "c", false, "open the conversation that was used last")
	f.StringVar(&o.Title, "title", "", "the title of a new conversation (default: its first message)")
	f.StringVarP(&o.Model, "model", "m", "", "the model: provider/name, or offline")
	f.StringVar(&o.System, "system", "", "the system prompt of a new conversation")
	f.StringArrayVarP(&o.Attach, "attach-file", "f", nil, "send a file along with the first message; - is standard input")
	f.BoolVarP(&o.Once, "once", "1", false, "print the answer to the message, and leave")
	f.BoolVar(&o.Plain, "plain", false, "lines in and text out, without a screen")
	f.BoolVar(&o.NoColor, "no-color", os.Getenv("NO_COLOR") != "", "show no colours")
	return cmd
}

// check refuses options that contradict each other.
func (o Options) check() error {
	stdin := 0
	for _, a := range o.Attach {
		if a == "-" {
			stdin++
		}
	}
	switch {
	case o.Session != "" && o.Continue:
		return errors.New("--session and --continue are two ways to say which conversation: give one")
	case (o.Session != "" || o.Continue) && (o.Title != "" || o.System != ""):
		return errors.New("--title and --system are for a new conversation: /rename and /system change one that is there")
	case o.Once && o.Message == "" && len(o.Attach) == 0:
		return errors.New("--once needs a message: convls chat --once \"What is ...?\"")
	case stdin > 1, stdin == 1 && !o.Once:
		return errors.New("--attach-file - reads standard input to its end: give it once, together with --once")
	}
	return nil
}
