--- `:Convls`: finds the action and its completion in the table of actions.
local M = {}

-- :help convls works where no plugin manager has made the tags, too.
local function tag_help()
  local doc = require("convls.server").plugin_dir() .. "/doc"
  if not vim.uv.fs_stat(doc .. "/tags") then
    pcall(vim.cmd.helptags, doc) -- the folder may not be ours to write in
  end
end

---@param opts vim.api.keyset.create_user_command.command_args
function M.run(opts)
  if vim.fn.getcmdwintype() ~= "" then
    return vim.notify("convls: close this command-line window first, with <C-c>", vim.log.levels.WARN)
  end
  tag_help()
  local actions = require("convls.actions")
  local words = opts.fargs
  local name = words[1]
  if not name then
    return actions.get("chat").run({ args = {}, text = "" })
  end
  local action = actions.get(name)
  if not action then
    local near = require("convls.config").nearest(name, actions.names())
    local hint = near and (", did you mean :Convls %s?"):format(near) or ": see :help convls-commands"
    return vim.notify(("convls: there is no :Convls %s%s"):format(name, hint), vim.log.levels.ERROR)
  end
  local text = vim.trim((opts.args:gsub("^%s*%S+", "", 1)))
  if text ~= "" and not action.args then
    return vim.notify(("convls: :Convls %s takes no words: %s"):format(name, text), vim.log.levels.ERROR)
  elseif opts.range > 0 and not action.range then
    return vim.notify(("convls: :Convls %s takes no range"):format(name), vim.log.levels.ERROR)
  end
  action.run({
    args = vim.list_slice(words, 2),
    text = text,
    range = opts.range > 0 and { opts.line1, opts.line2 } or nil,
  })
end

---@param lead string
---@param line string
---@param at integer
---@return string[]
function M.complete(lead, line, at)
  local actions = require("convls.actions")
  local words = vim.split(vim.trim(line:sub(1, at)):gsub("^.-Convls!?%s*", ""), "%s+", { trimempty = true })
  if lead == "" then
    words[#words + 1] = ""
  end
  local candidates = {}
  if #words <= 1 then
    candidates = actions.names()
  else
    local action = actions.get(words[1])
    if action and action.complete then
      candidates = action.complete(lead, vim.list_slice(words, 2))
    end
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates)
end

return M
