--- The table of actions. Each subcommand of `:Convls` is one entry: the command, its
--- completion, the `<Plug>` maps, the default maps and the help come from here.
local M = {}

--- What an action is called with.
---@class convls.Call
---@field args string[] the words after the subcommand
---@field text string the same as they were typed
---@field range? integer[] first and last line, if a range was given

---@class convls.Action
---@field name string
---@field args? string how its arguments are written in the help; without it, it takes none
---@field range? boolean whether it takes a range of lines
---@field desc string one sentence, without a full stop
---@field keys? { [1]: string|string[], [2]: string }[] default maps of chat buffers: modes and keys
---@field graph? { [1]: string|string[], [2]: string }[] default maps of graph buffers
---@field context? { [1]: string|string[], [2]: string }[] default maps of context views
---@field plug? boolean whether <Plug>(convls-NAME) is defined; true where it is left out
---@field complete? fun(lead: string, words: string[]): string[]
---@field run fun(call: convls.Call)

local by_name = {} ---@type table<string, convls.Action>
local order = {} ---@type string[]

--- Adds an action.
---@param action convls.Action
function M.add(action)
  assert(not by_name[action.name], "the action " .. action.name .. " is there already")
  by_name[action.name] = action
  order[#order + 1] = action.name
end

--- Returns an action, or nil.
---@param name string
---@return convls.Action?
function M.get(name)
  return by_name[name]
end

--- Returns the names, in the order of the help.
---@return string[]
function M.names()
  return vim.deepcopy(order)
end

--- Returns all actions, in the order of the help.
---@return convls.Action[]
function M.all()
  return vim.tbl_map(function(name)
    return by_name[name]
  end, order)
end

-- Each file adds its own actions; what they run is loaded when it is run.
for _, file in ipairs({ "chat", "graph", "compact", "server" }) do
  require("convls.actions." .. file)(M)
end

return M
