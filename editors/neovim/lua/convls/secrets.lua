--- Keys of providers that the server finds nowhere else: in no variable, by no command,
--- in no keyring. It asks for them when a message is sent, and keeps them in memory only;
--- so does nothing here, but for a key that came when the server no longer waited.
---
--- A person is asked only when nothing else is being typed: what was meant for a text or
--- a command line must not become a key.
local bus = require("convls.bus")
local config = require("convls.config")

local M = {}

-- How long the server waits for an answer, in ms.
local PATIENCE = 60000
-- The keys that answer the question whether to type a key. No text has them.
local YES, NO = "\25", "\14"

--- Takes a key, or nil for none. Returns whether anybody waited for it.
---@alias convls.KeyTaker fun(key?: string): boolean

--- A key that is to be asked for, and who waits for it.
---@class convls.KeyQuestion
---@field params convls.protocol.SecretGetParams
---@field takers convls.KeyTaker[]

local questions = {} ---@type convls.KeyQuestion[] the oldest first
local reminder ---@type integer? the window that says that a key is wanted
local asking ---@type convls.KeyQuestion?
local watch ---@type integer? the autocommand that waits for the person
-- Providers for which the person has said no, until the server starts again.
local declined = {} ---@type table<string, boolean>
-- Keys that came too late, for the next time.
local late = {} ---@type table<string, string>

bus.on(bus.SERVER, function(what)
  if what == "ready" then
    declined = {}
  else
    questions = {}
  end
end)

-- A key is for one address alone.
local function place(params)
  return params.provider .. "\n" .. (params.base_url or "")
end

local function wish(params)
  return params.provider .. (params.reason == "rejected" and " wants a right key" or " wants a key")
end

-- What keeps the person from being asked now, in words; nil if nothing does.
local function busy()
  if vim.fn.reg_recording() ~= "" then
    return "after the macro"
  end
  if vim.api.nvim_get_mode().mode ~= "n" or vim.fn.getcmdwintype() ~= "" then
    return "in normal mode"
  end
end

-- Shows which key is wanted while the person can not be asked for it: in a window, since
-- the line for messages belongs to the mode then.
-- The window of command lines allows no other beside it.
local function remind()
  local hindrance = questions[1] and not asking and busy()
  if not hindrance then
    if reminder and vim.api.nvim_win_is_valid(reminder) then
      pcall(vim.api.nvim_win_close, reminder, true)
    end
    reminder = nil
  elseif vim.fn.getcmdwintype() == "" and not (reminder and vim.api.nvim_win_is_valid(reminder)) then
    local text = (" convls: %s; you are asked for it %s "):format(wish(questions[1].params), hindrance)
    local buf = vim.api.nvim_create_buf(false, true)
    vim.bo[buf].bufhidden = "wipe"
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, { text })
    reminder = vim.api.nvim_open_win(buf, false, {
      relative = "editor",
      anchor = "SE",
      row = vim.o.lines - vim.o.cmdheight - 1,
      col = vim.o.columns,
      width = math.min(vim.fn.strdisplaywidth(text), vim.o.columns),
      height = 1,
      style = "minimal",
      focusable = false,
      noautocmd = true,
    })
    vim.cmd.redraw()
  end
end

local function drop(question)
  questions = vim.tbl_filter(function(other)
    return other ~= question
  end, questions)
  remind()
end

---@param question convls.KeyQuestion
---@param key? string
local function settle(question, key)
  drop(question)
  local taken, takers = false, question.takers
  question.takers = {}
  for _, take in ipairs(takers) do
    taken = take(key) or taken
  end
  if not key then
    declined[place(question.params)] = true
  elseif not taken then
    late[place(question.params)] = key
    vim.notify(("convls: the key of %s came late: :Convls retry asks the model again"):format(question.params.provider))
  end
end

-- Says whether nothing is half typed: no operator, count or map, and no key unread.
local function idle()
  return not busy() and vim.fn.reg_executing() == "" and vim.fn.state("moS") == "" and vim.fn.getchar(1) == 0
end

local function say(text)
  vim.api.nvim_echo({ { text, "Question" } }, false, {})
end

-- Leaves nothing of a question on the screen.
local function clear()
  vim.api.nvim_echo({ { "" } }, false, {})
  vim.cmd.redraw({ bang = true })
end

---@param question convls.KeyQuestion
local function ask(question)
  say(wish(question.params) .. ": <C-Y> to type it, <C-N> for none")
  vim.cmd.redraw()
  local read, char = pcall(vim.fn.getcharstr)
  if read and char ~= YES and char ~= NO then
    -- It was meant for something else, and goes there; then the question comes again.
    clear()
    local special = char:byte() == 0x80
    return vim.api.nvim_feedkeys(char, "it", not special)
  end
  local key = ""
  if char == YES then
    clear()
    local ok, typed = pcall(vim.fn.inputsecret, wish(question.params) .. " (empty for none): ")
    key = ok and vim.trim(typed) or ""
  end
  clear()
  settle(question, key ~= "" and key or nil)
end

local function unwatch()
  if watch then
    vim.api.nvim_del_autocmd(watch)
    watch = nil
  end
end

-- Asks the oldest question as soon as the person can be asked.
local function attend()
  watch = watch
    or vim.api.nvim_create_autocmd("SafeState", {
      -- Not from inside of the autocommand: others would not run meanwhile.
      callback = vim.schedule_wrap(function()
        remind()
        if #questions == 0 then
          return unwatch()
        end
        if not asking and idle() then
          asking = questions[1]
          local ok, err = pcall(ask, asking)
          asking = nil
          if not ok then
            error(err, 0)
          end
        end
      end),
    })
end

---@param params convls.protocol.SecretGetParams
---@param take convls.KeyTaker
local function join(params, take)
  local question
  for _, other in ipairs(questions) do
    if place(other.params) == place(params) then
      question = other
    end
  end
  if not question then
    question = { params = params, takers = {} }
    questions[#questions + 1] = question
    attend()
    remind()
  end
  question.takers[#question.takers + 1] = take
  vim.defer_fn(function()
    local rest = vim.tbl_filter(function(other)
      return other ~= take
    end, question.takers)
    if #rest == #question.takers then
      return
    end
    question.takers = rest
    take(nil)
    -- What is being typed already is taken all the same.
    if #rest == 0 and asking ~= question and vim.tbl_contains(questions, question) then
      drop(question)
      vim.notify(
        ("convls: %s and got none in time: :Convls retry asks again"):format(wish(params)),
        vim.log.levels.WARN
      )
    end
  end, PATIENCE)
end

--- Finds a key, by what the setting `key` says.
---@param params convls.protocol.SecretGetParams
---@param take convls.KeyTaker called once, at once or later
function M.get(params, take)
  local source = config.get().key
  if source == "ask" then
    local at = place(params)
    if late[at] then
      local key = late[at]
      late[at] = nil
      take(key)
    elseif params.quiet or declined[at] then
      take(nil)
    else
      join(params, take)
    end
    return
  end
  local ok, key = true, nil
  if source then
    ok, key = pcall(source, params.provider, params.base_url, params.reason)
  end
  if not ok then
    -- What it says may hold a key, and messages are kept.
    vim.notify("convls: the setting key failed for " .. params.provider, vim.log.levels.ERROR)
  end
  take(ok and type(key) == "string" and key ~= "" and key or nil)
end

return M
