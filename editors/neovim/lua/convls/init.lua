--- convls for Neovim: what other configurations may call. All else is behind
--- `:Convls`; see |convls.txt|.
local M = {}

--- Merges settings over the defaults and `vim.g.convls`. Not needed: without it the
--- plugin works with the defaults.
---@param user? convls.UserConfig
function M.setup(user)
  require("convls.config").setup(user)
end

--- Sends a request of docs/protocol.md to the server, and starts that if need be.
---@param method convls.protocol.Method
---@param params table
---@param callback fun(err?: convls.Error, result?: any)
function M.request(method, params, callback)
  require("convls.server").request(method, params, callback)
end

--- Returns a short text for a status line: model, tokens, cost, and what goes on in
--- the chat of the current buffer, or in the one used last. Empty without a chat.
---@return string
function M.statusline()
  -- A status line must not load the plugin.
  local chat = package.loaded["convls.chat"]
  return chat and chat.statusline() or ""
end

return M
