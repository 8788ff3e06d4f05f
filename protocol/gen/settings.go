package main

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"convls/protocol"
)

const settingsIntro = `# Settings

Every setting of convls, by its dotted name. NAME stands for the name of a provider, or of a model as provider/name. A
source that leaves a setting out, or gives it empty or null, says nothing of it, and the sources before it count; so it is with
zero, unless zero means something there (` + "`temperature`, `max_retries`" + `).

Later sources win over earlier ones:

1. the defaults below;
2. the user's file, in TOML: ` + "`config.toml`" + ` in the folder convls of the XDG configuration directory (` + "`~/.config/convls`" + `), or the file
   that ` + "`--config` or `CONVLS_CONFIG`" + ` names;
3. the environment: the variable in the table, with NAME in capitals and every other character an underscore. It means the
   provider or model of that spelling that any source names; a list is a JSON array, or one string;
4. the editor: ` + "`initializationOptions`" + ` of initialize, then ` + "`workspace/didChangeConfiguration`" + `; dotted or nested, bare or under
   ` + "`convls`" + `, and for that connection alone;
5. the session: ` + "`settings`" + ` of ` + "`convls/session/create`" + ` and ` + "`convls/session/configure`" + `.

What a workspace brings along arrives as ` + "`workspace_settings`" + ` with ` + "`trusted`" + `. A workspace that is not trusted can not name
commands, addresses or environment variables: ` + "`kind`, `base_url`, `api_key_env` and `api_key_cmd`" + ` of its providers are ignored.

A name that is no setting is a warning. A value that a setting can not have is an error that names the setting: nothing of that
source is taken, and what held before holds on. In dotted names NAME may have dots and slashes of its own:
` + "`models.openai/gpt-4.1.window`" + `. In TOML it is quoted: ` + "`[models.\"openai/gpt-4.1\"]`" + `.

Keys of providers are never settings: they come from the environment, the system's keyring, a command, or the editor. The
folder of the store is told by ` + "`--data-dir`" + ` or ` + "`CONVLS_DATA_DIR`" + `.
`

// defaultValue finds the default in a setting's comment.
var defaultValue = regexp.MustCompile(`\s*Default: (.*)\.$`)

// settingsDocument returns docs/settings.md.
func settingsDocument(src *source) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(note)
	b.WriteString(settingsIntro)
	b.WriteString("\n| setting | type | default | environment | meaning |\n| --- | --- | --- | --- | --- |\n")
	if err := settingsRows(&b, src, reflect.TypeFor[protocol.Settings](), ""); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// settingsRows writes a row for each setting in t, whose names begin with prefix.
func settingsRows(b *bytes.Buffer, src *source, t reflect.Type, prefix string) error {
	for _, m := range members(t) {
		name := prefix + m.json
		elem := m.field.Type
		if elem.Kind() == reflect.Map {
			elem, name = elem.Elem(), name+".NAME"
		}
		if elem.Kind() == reflect.Struct {
			if err := settingsRows(b, src, elem, name+"."); err != nil {
				return err
			}
			continue
		}
		typ, err := wireType(m.field.Type, func(t reflect.Type) string { return t.Name() })
		if err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
		text := prose(src.types[t.Name()].fields[m.field.Name], t, func(name string) string { return "`" + name + "`" })
		value := "none"
		if at := defaultValue.FindStringSubmatchIndex(text); at != nil {
			value, text = text[at[2]:at[3]], text[:at[0]]
		}
		variable := "CONVLS_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
		fmt.Fprintf(b, "| `%s` | %s | %s | `%s` | %s |\n", name, typ, cell(value), variable, cell(text))
	}
	return nil
}
