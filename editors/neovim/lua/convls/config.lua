--- Settings: the table of all of them with defaults and checks, and the merge of
--- what the user said in `vim.g.convls` and `setup()`.
local M = {}

--- What a person may write. Everything may be left out.
---@class convls.UserConfig
---@field cmd? string|string[]
---@field settings? table
---@field key? false|"ask"|fun(provider: string, base_url: string, reason: string): string?
---@field restart? "manual"|"auto"
---@field keymaps? boolean
---@field open? "vsplit"|"split"|"tab"|"current"
---@field insert? boolean
---@field tail? integer
---@field batch_ms? integer
---@field winbar? boolean
---@field fold_tools? boolean

--- The settings in force: every member is there.
---@class convls.Config: convls.UserConfig
---@field cmd string|string[]|false
---@field settings table
---@field key false|"ask"|fun(provider: string, base_url: string, reason: string): string?
---@field restart "manual"|"auto"
---@field keymaps boolean
---@field open "vsplit"|"split"|"tab"|"current"
---@field insert boolean
---@field tail integer
---@field batch_ms integer
---@field winbar boolean
---@field fold_tools boolean

--- One setting. `check` returns what is wanted instead, or nil where the value is fine.
---@class convls.Setting
---@field name string
---@field default any
---@field doc string
---@field check fun(value: any): string?

local function one_of(...)
  local values = { ... }
  return function(value)
    if not vim.tbl_contains(values, value) then
      return "one of " .. table.concat(vim.tbl_map(vim.inspect, values), ", ")
    end
  end
end

local function is(kind)
  return function(value)
    if type(value) ~= kind then
      return "a " .. kind
    end
  end
end

local function whole(least, most)
  return function(value)
    if type(value) ~= "number" or value % 1 ~= 0 or value < least or value > (most or value) then
      return most and ("a whole number from %d to %d"):format(least, most)
        or ("a whole number, %d or more"):format(least)
    end
  end
end

-- Returns the first thing in a value that JSON has no word for, or nil. `name` is where
-- the value is, and `above` are the tables that it is in.
local function unsayable(value, name, above)
  local kind = type(value)
  if kind == "number" and (value ~= value or math.abs(value) == math.huge) then
    return name .. " is " .. tostring(value)
  elseif kind == "table" then
    if above[value] then
      return name .. " contains itself"
    end
    above[value] = true
    local list = vim.islist(value)
    for key, member in pairs(value) do
      if not list and type(key) ~= "string" then
        return ("%s is neither a list nor has it names alone"):format(name)
      end
      local wrong = unsayable(member, list and ("%s[%d]"):format(name, key) or name .. "." .. key, above)
      if wrong then
        return wrong
      end
    end
    above[value] = nil
  elseif kind ~= "string" and kind ~= "number" and kind ~= "boolean" and value ~= vim.NIL then
    return name .. " is a " .. kind
  end
end

-- The server gets its settings as JSON.
local function sayable(value)
  if type(value) ~= "table" or (next(value) ~= nil and vim.islist(value)) then
    return "a table of settings by their names"
  end
  local wrong = unsayable(value, "settings", {})
  return wrong and ("a table that can be written as JSON (%s)"):format(wrong)
end

--- All settings, in the order of the help.
---@type convls.Setting[]
M.settings = {
  {
    name = "cmd",
    default = false,
    doc = "The server's command line, as a list, or the path of the program. "
      .. "Without it `convls` is looked for on PATH, and then in the checkout that the plugin is in.",
    check = function(value)
      local list = type(value) == "table" and value or { value }
      local fine = value == false or #list > 0
      for _, word in ipairs(list) do
        fine = fine and type(word) == "string" and word ~= ""
      end
      if not fine or (type(value) == "table" and not vim.islist(value)) then
        return "a string or a list of strings"
      end
    end,
  },
  {
    name = "settings",
    default = {},
    doc = 'Settings of the server (docs/settings.md), dotted or nested: `{ model = "ollama/llama3.2" }`.',
    check = sayable,
  },
  {
    name = "key",
    default = "ask",
    doc = "Where the key of a provider comes from that is in no variable, command or keyring of the server's settings. "
      .. "`ask`: you are asked when it is needed, in normal mode. A function gets provider, address, and `missing` or "
      .. "`rejected`, and returns the key or nil. `false`: nowhere. Keys are kept in the server's memory alone.",
    check = function(value)
      if value ~= false and value ~= "ask" and type(value) ~= "function" then
        return '"ask", a function or false'
      end
    end,
  },
  {
    name = "restart",
    default = "manual",
    doc = "What happens when the server dies. `manual`: you are told, and `:Convls restart` or the next command "
      .. "starts it. `auto`: it is started again at once, up to three times a minute.",
    check = one_of("manual", "auto"),
  },
  {
    name = "keymaps",
    default = true,
    doc = "Whether chats and graphs get the maps of |convls-maps|. No other buffer gets any.",
    check = is("boolean"),
  },
  {
    name = "open",
    default = "vsplit",
    doc = "Where a chat opens: `vsplit`, `split`, `tab` or `current`. A chat that is on the screen already is gone to. "
      .. "With `vsplit` a view that is opened from another one goes below it.",
    check = one_of("vsplit", "split", "tab", "current"),
  },
  {
    name = "insert",
    default = false,
    doc = "Whether a chat that opens begins in insert mode.",
    check = is("boolean"),
  },
  {
    name = "tail",
    default = 100,
    doc = "How many rows of a transcript are loaded at a time; more are loaded when the top is reached. At most 500.",
    check = whole(1, 500),
  },
  {
    name = "batch_ms",
    default = 40,
    doc = "How many milliseconds pass at least between two updates of a reply that is being written.",
    check = whole(0),
  },
  {
    name = "winbar",
    default = true,
    doc = "Whether chat windows show title, model, tokens, cost and queue in their winbar.",
    check = is("boolean"),
  },
  {
    name = "fold_tools",
    default = true,
    doc = "Whether tool calls, reasoning and summaries are folded in the transcript.",
    check = is("boolean"),
  },
}

--- Returns the candidate that is spelled most like `word`, or nil if none is near.
---@param word string
---@param candidates string[]
---@return string?
function M.nearest(word, candidates)
  local best, best_distance
  for _, candidate in ipairs(candidates) do
    local row = {}
    for j = 0, #candidate do
      row[j] = j
    end
    for i = 1, #word do
      local diagonal = row[0]
      row[0] = i
      for j = 1, #candidate do
        local cost = word:sub(i, i):lower() == candidate:sub(j, j):lower() and 0 or 1
        local value = math.min(row[j] + 1, row[j - 1] + 1, diagonal + cost)
        diagonal, row[j] = row[j], value
      end
    end
    local distance = row[#candidate]
    if vim.startswith(candidate, word) then
      distance = math.min(distance, 1)
    end
    if not best or distance < best_distance then
      best, best_distance = candidate, distance
    end
  end
  if best and best_distance <= math.max(2, math.floor(#word / 3)) then
    return best
  end
end

--- Checks what a person wrote.
---@param user any
---@param source string where it was written, for the messages
---@return table<string, any> accepted the members that are fine
---@return string[] problems one message each
function M.validate(user, source)
  if user == nil then
    return {}, {}
  end
  if type(user) ~= "table" then
    return {}, { ("%s must be a table, not %s"):format(source, vim.inspect(user)) }
  end
  local names, by_name = {}, {}
  for _, setting in ipairs(M.settings) do
    names[#names + 1] = setting.name
    by_name[setting.name] = setting
  end
  local accepted, problems = {}, {}
  local given = vim.tbl_keys(user)
  table.sort(given, function(a, b)
    return tostring(a) < tostring(b)
  end)
  for _, name in ipairs(given) do
    local value, setting = user[name], by_name[name]
    if not setting then
      local near = M.nearest(tostring(name), names)
      local hint = near and (', did you mean "%s"?'):format(near) or ", see :help convls-settings"
      problems[#problems + 1] = ('%s: there is no setting "%s"%s'):format(source, tostring(name), hint)
    else
      local wanted = setting.check(value)
      if wanted then
        problems[#problems + 1] = ("%s: %s must be %s, not %s"):format(source, name, wanted, vim.inspect(value))
      else
        accepted[name] = value
      end
    end
  end
  return accepted, problems
end

local from_setup ---@type convls.UserConfig?
local current ---@type convls.Config?
local problems = {} ---@type string[]

local function resolve()
  local config = {}
  for _, setting in ipairs(M.settings) do
    config[setting.name] = vim.deepcopy(setting.default)
  end
  problems = {}
  for _, said in ipairs({ { vim.g.convls, "vim.g.convls" }, { from_setup, "setup()" } }) do
    local accepted, wrong = M.validate(said[1], said[2])
    config = vim.tbl_extend("force", config, accepted)
    vim.list_extend(problems, wrong)
  end
  current = config
  if #problems > 0 then
    vim.notify("convls: " .. table.concat(problems, "\nconvls: "), vim.log.levels.WARN)
  end
end

--- Takes the user's settings. What is wrong is told, and the default holds in its place.
---@param user? convls.UserConfig
function M.setup(user)
  from_setup = user
  resolve()
end

--- Returns the settings in force.
---@return convls.Config
function M.get()
  if not current then
    resolve()
  end
  return current --[[@as convls.Config]]
end

--- Returns what was wrong with the user's settings.
---@return string[]
function M.problems()
  M.get()
  return problems
end

return M
