--- Keys of providers that the server finds nowhere else: in no variable, by no command,
--- in no keyring. It asks for them when a message is sent, and keeps them in memory only;
--- so does nothing here.
local bus = require("convls.bus")
local config = require("convls.config")

local M = {}

-- Providers for which the person has said no, until the server starts again.
local declined = {} ---@type table<string, boolean>

bus.on(bus.SERVER, function(what)
  if what == "ready" then
    declined = {}
  end
end)

local function ask(params)
  if params.quiet or declined[params.provider] then
    return nil
  end
  local question = params.reason == "rejected" and "%s wants a right key (empty for none): "
    or "The key of %s (empty for none): "
  local ok, key = pcall(vim.fn.inputsecret, question:format(params.provider))
  vim.cmd.redraw({ bang = true })
  if not ok or vim.trim(key) == "" then
    declined[params.provider] = true
    return nil
  end
  return vim.trim(key)
end

--- Answers convls/secret/get, by what the setting `key` says.
---@param params { provider: string, base_url: string, reason: "missing"|"rejected", quiet?: boolean }
---@return { key?: string }
function M.get(params)
  local source, key = config.get().key, nil
  if source == "ask" then
    key = ask(params)
  elseif source then
    local ok, found = pcall(source, params.provider, params.base_url, params.reason)
    if ok then
      key = found
    else
      -- What it says may hold a key, and messages are kept.
      vim.notify("convls: the setting key failed for " .. params.provider, vim.log.levels.ERROR)
    end
  end
  return type(key) == "string" and key ~= "" and { key = key } or vim.empty_dict()
end

return M
