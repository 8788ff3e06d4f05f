-- Lua 5.1 alone: Neovim may be built without LuaJIT.
std = "lua51"
read_globals = {
  vim = {
    fields = {
      g = { other_fields = true, read_only = false },
      b = { other_fields = true, read_only = false },
      w = { other_fields = true, read_only = false },
      o = { other_fields = true, read_only = false },
      bo = { other_fields = true, read_only = false },
      wo = { other_fields = true, read_only = false },
      env = { other_fields = true, read_only = false },
    },
    other_fields = true,
  },
}
max_line_length = 120
max_string_line_length = false
-- The generated types are comments of any length.
files["**/lua/convls/protocol.lua"] = { max_line_length = false }
