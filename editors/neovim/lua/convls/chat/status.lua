--- What is said of a session in a line: title, branch, model, budget, cost, what goes on.
local render = require("convls.chat.render")

local M = {}

-- What goes on: writing, queued, stopped.
local function activity(session)
  local words = {}
  if not session.connected and session.info then
    words[#words + 1] = "no server"
  end
  if next(session.running) then
    words[#words + 1] = "writing"
  end
  if #session.queue > 0 then
    words[#words + 1] = ("%d queued"):format(#session.queue)
  end
  if session.compaction then
    words[#words + 1] = "compacting"
  end
  return words
end

--- Returns what the winbar of a chat window says.
---@param session convls.Session
---@return string
function M.winbar(session)
  local info = session.info
  if not info then
    return ""
  end
  local function escaped(text)
    return (text:gsub("%%", "%%%%"))
  end
  local words = { escaped(info.title ~= "" and info.title or "New chat") }
  if info.branch then
    words[#words + 1] = "⎇ " .. escaped(info.branch)
  end
  words[#words + 1] = escaped(info.model)
  local budget = info.budget
  if budget and budget.limit > 0 then
    local group = budget.percent >= 70 and "ConvlsBudgetHigh" or "ConvlsBudgetLow"
    words[#words + 1] = ("%%#%s#%s/%s %d%%%%%%*"):format(
      group,
      render.short(budget.used),
      render.short(budget.limit),
      math.floor(budget.percent + 0.5)
    )
  end
  words[#words + 1] = render.cost(info.usage)
  local busy = activity(session)
  if #busy > 0 then
    words[#words + 1] = ("%%#ConvlsRunning#%s%%*"):format(table.concat(busy, ", "))
  end
  -- In a narrow window it is the title that is cut.
  return " %<" .. table.concat(words, " · ")
end

--- See `require("convls").statusline()`.
---@param session convls.Session
---@return string
function M.statusline(session)
  local info = session.info
  if not info then
    return ""
  end
  local words = { info.model }
  local budget = info.budget
  if budget and budget.limit > 0 then
    words[#words + 1] = ("%d%%"):format(math.floor(budget.percent + 0.5))
  end
  words[#words + 1] = render.cost(info.usage)
  vim.list_extend(words, activity(session))
  return table.concat(words, " ")
end

return M
