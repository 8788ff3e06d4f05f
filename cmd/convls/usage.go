package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mostTypos is how many letters a word may be away from the one that is suggested.
const mostTypos = 2

// nearest returns the one of words that a misspelt word probably means; "" if none
// is near.
func nearest(word string, words []string) string {
	if len(words) == 0 {
		return ""
	}
	best := slices.MinFunc(words, func(a, b string) int {
		return levenshtein.ComputeDistance(a, word) - levenshtein.ComputeDistance(b, word)
	})
	if levenshtein.ComputeDistance(best, word) > mostTypos {
		return ""
	}
	return best
}

// noArguments refuses what stands where a subcommand should: most likely it is one,
// misspelt.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if near := nearest(args[0], names); near != "" {
		return fmt.Errorf("there is no command %q: did you mean %s %s?", args[0], cmd.Name(), near)
	}
	return fmt.Errorf("there is no command %q: there are %s (%s --help says more)", args[0], strings.Join(names, ", "), cmd.Name())
}

// flagError says which flag was probably meant by one that there is not.
func flagError(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	name := unknown.GetSpecifiedName()
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := nearest(name, names); near != "" && len(name) > mostTypos {
		return fmt.Errorf("there is no flag --%s: did you mean --%s?", name, near)
	}
	return fmt.Errorf("%w (%s --help lists the flags)", err, cmd.CommandPath())
}

// arguments refuses another number of arguments than a command takes, in its own
// words.
func arguments(least, most int, missing string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return errors.New(missing)
		case most > 0 && len(args) > most:
			return fmt.Errorf("%s takes %d argument, not %d: %s", cmd.CommandPath(), most, len(args), missing)
		}
		return nil
	}
}
