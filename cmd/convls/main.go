// Command convls is a language server for conversations. Without a subcommand it
// serves one editor over standard input and output.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"convls/cmd/convls/chat"
	"convls/cmd/convls/doctor"
	"convls/cmd/convls/eval"
	"convls/protocol"
	"convls/server"
	"convls/settings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	switch {
	case err == nil:
	case errors.Is(err, server.ErrNoShutdown):
		os.Exit(1) // LSP, section exit
	default:
		fmt.Fprintln(os.Stderr, "convls:", message(err))
		os.Exit(1)
	}
}

// message is what a person is told: of a refusal its own words, which say what to
// do next, and not what lies under it.
func message(err error) string {
	if refusal, ok := errors.AsType[*protocol.Error](err); ok {
		return refusal.Message
	}
	return err.Error()
}

// root builds the command line.
func root() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "convls",
		Short: "A language server for conversations",
		Long: "convls serves conversations with language models to editors: streaming turns, branches, and context that is compacted in the open.\n" +
			"Without a subcommand it speaks the language server protocol on standard input and output, as an editor starts it.\n" +
			"To try it in a terminal: convls chat",
		Args:          noArguments,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), f) },
	}
	f.register(cmd)
	cmd.SetFlagErrorFunc(flagError)
	cmd.AddCommand(
		chat.Command(f.serverArgs, f.settingsWarning),
		importCommand(&f),
		exportCommand(&f),
		sessionsCommand(&f),
		graphCommand(&f),
		doctor.Command(doctor.Options{Paths: f.resolve}),
		eval.Command(eval.Options{Paths: f.resolve}),
		doctor.VersionCommand(),
	)
	return cmd
}

// flags are what every subcommand takes.
type flags struct {
	set                      *pflag.FlagSet
	dataDir, config, logFile string
}

func (f *flags) register(cmd *cobra.Command) {
	f.set = cmd.PersistentFlags()
	f.set.StringVar(&f.dataDir, "data-dir", "", "the store's folder (default: CONVLS_DATA_DIR, else the user's data folder)")
	f.set.StringVar(&f.config, "config", "", "the settings file (default: CONVLS_CONFIG, else the user's configuration folder)")
	f.set.StringVar(&f.logFile, "log-file", "", "the log file (default: in the user's state folder)")
	// Clients of the language server protocol add --stdio, some of them twice.
	cmd.Flags().Bool("stdio", true, "speak on standard input and output, which is the only way there is")
	cmd.Flags().Bool("in-process", true, "open the store in this process, which is the only way there is")
}

// given returns a flag's value, nil if it is not on the command line: an empty
// one is refused and not taken for the default.
func (f *flags) given(name string, value *string) *string {
	if f.set.Changed(name) {
		return value
	}
	return nil
}

// resolve tells where things are.
func (f *flags) resolve() (settings.Paths, error) {
	return settings.FindPaths(os.Environ(), settings.Overrides{DataDir: f.given("data-dir", &f.dataDir),
		Config: f.given("config", &f.config), LogFile: f.given("log-file", &f.logFile)})
}

// settingsWarning says in a line what of the user's settings is not understood: the
// log, where a server tells it, is read by nobody who chats. An error is about the
// flags; what is wrong with the settings the server itself refuses.
func (f *flags) settingsWarning() (string, error) {
	paths, err := f.resolve()
	if err != nil {
		return "", err
	}
	_, warnings, _ := settings.Load(paths.Config, os.Environ())
	switch len(warnings) {
	case 0:
		return "", nil
	case 1:
		return warnings[0], nil
	}
	return fmt.Sprintf("%s (and %d more: convls doctor lists them)", warnings[0], len(warnings)-1), nil
}

// serverArgs is the command line that starts a server with these flags.
func (f *flags) serverArgs() []string {
	args := []string{"--stdio"}
	// Which flags were given a set knows only of those that it parsed itself, and
	// behind a subcommand that is another set.
	f.set.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			args = append(args, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	return args
}
