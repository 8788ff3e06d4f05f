--- The event bus: what the server sends, and what the plugin itself tells, goes to
--- whoever subscribed. A topic is a session id, or one of the names below.
local M = {}

--- The topic of events that belong to no session, or to any: sessions that were
--- made, changed or deleted.
M.STORE = "store"
--- The topic of the connection: `ready`, `lost`.
M.SERVER = "server"

--- What a handler gets: `event` with a convls.protocol.Event, `delta` with a
--- convls.protocol.Delta, `reset` with a convls.protocol.ResetNotification, or one of the
--- connection's.
---@alias convls.Handler fun(what: string, payload: any)

local handlers = {} ---@type table<string, table<integer, convls.Handler>>
local serial = 0

--- Calls `handler` for everything of `topic` until the returned function is called.
---@param topic string
---@param handler convls.Handler
---@return fun() off
function M.on(topic, handler)
  serial = serial + 1
  local id = serial
  handlers[topic] = handlers[topic] or {}
  handlers[topic][id] = handler
  return function()
    if handlers[topic] then
      handlers[topic][id] = nil
      if next(handlers[topic]) == nil then
        handlers[topic] = nil
      end
    end
  end
end

--- Hands something to handlers, in the order of their keys. One that fails is told of and
--- keeps nothing from the others; one that is taken out meanwhile gets nothing.
---@param to table<integer, convls.Handler>
---@param what string
---@param payload any
function M.tell(to, what, payload)
  local keys = vim.tbl_keys(to)
  table.sort(keys)
  for _, key in ipairs(keys) do
    local handler = to[key]
    if handler then
      local ok, err = xpcall(handler, debug.traceback, what, payload)
      if not ok then
        vim.notify(("convls: a view failed on %s: %s"):format(what, err), vim.log.levels.ERROR)
      end
    end
  end
end

--- Hands something to the handlers of a topic, in the order they subscribed.
---@param topic string
---@param what string
---@param payload any
function M.emit(topic, what, payload)
  M.tell(handlers[topic] or {}, what, payload)
end

--- Fires a `User` autocommand, so that people's own configuration can follow.
---@param name string such as `ConvlsTurnFinished`
---@param data table
function M.autocmd(name, data)
  vim.api.nvim_exec_autocmds("User", { pattern = name, modeline = false, data = data })
end

return M
