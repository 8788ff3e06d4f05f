// Package settings resolves protocol.Settings from their layers. Later ones win:
//
//  1. what is built in;
//  2. the user's file: config.toml in the folder convls of the XDG configuration
//     directory, or the file that --config or CONVLS_CONFIG names. It is TOML;
//  3. the environment: CONVLS_ and the setting's name in capitals, every other
//     character an underscore;
//  4. initializationOptions of a client;
//  5. what the client sent last with workspace/didChangeConfiguration;
//  6. the session's own settings.
//
// [Load] reads the first three, once a process; a [Connection] adds a client's
// two; [Merge] lays a session's over them.
//
// # Names
//
// A setting is named by its path in protocol.Settings: compaction.trigger,
// providers.NAME.base_url, models.NAME.window. Every layer is first taken apart
// into such paths, so that nested and dotted spellings, and mixtures of both, are
// the same thing by construction. NAME is then what stands between the group and
// the member that ends the path, dots and slashes included:
// models.openai/gpt-4.1.window can be read in one way only, because no member has
// a dot in its name.
//
// # What counts as set
//
// As in protocol.Settings, null, an empty string, an empty list and zero are the
// same as nothing, and the layer below shows through; only where zero is a value
// of its own (temperature, max_retries, auto) is it set.
//
// # Refusals
//
// A value that a setting can not have is an error that names the setting, and the
// layer it is in changes nothing. A name that is no setting is a warning. A key
// is never a setting, and what looks like one is refused without being repeated.
package settings
