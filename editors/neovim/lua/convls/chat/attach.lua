--- What a person attaches to a message: pieces of buffers and files, the quickfix list,
--- diagnostics.
local M = {}

--- The kinds, for completion and for the question what to attach.
M.kinds = { "buffer", "selection", "file", "quickfix", "diagnostics" }

local function buffer_item(buf, first, last, type)
  local lines = vim.api.nvim_buf_get_lines(buf, first, last, false)
  local name = vim.api.nvim_buf_get_name(buf)
  local whole = first == 0 and last >= vim.api.nvim_buf_line_count(buf)
  return {
    type = type,
    uri = name ~= "" and vim.uri_from_bufnr(buf) or nil,
    range = not whole and {
      start = { line = first, character = 0 },
      ["end"] = { line = last, character = 0 },
    } or nil,
    text = table.concat(lines, "\n"),
  }
end

--- Returns the lines of a range of a buffer.
---@param buf integer
---@param first integer from 1
---@param last integer included
---@return convls.protocol.ContextItem
function M.selection(buf, first, last)
  return buffer_item(buf, first - 1, last, "selection")
end

--- Returns a whole buffer, as it is in the editor.
---@param buf integer
---@return convls.protocol.ContextItem
function M.buffer(buf)
  return buffer_item(buf, 0, vim.api.nvim_buf_line_count(buf), "file")
end

local function is_utf8(text)
  local lpeg = vim.lpeg
  local character = lpeg.R("\0\127") ^ 1 + lpeg.utfR(0x80, 0x10ffff)
  return (character ^ 0 * -1):match(text) ~= nil
end

--- Returns a file as it is on disk, or in the editor where it is loaded.
---@param path string
---@return convls.protocol.ContextItem?, string? problem
function M.file(path)
  path = vim.fn.fnamemodify(vim.fn.expand(path), ":p")
  local shown = vim.fn.fnamemodify(path, ":~:.")
  local buf = vim.fn.bufnr("^" .. vim.fn.escape(path, "\\[]*?^$~") .. "$")
  if buf > 0 and vim.api.nvim_buf_is_loaded(buf) then
    return M.buffer(buf)
  end
  local file, problem = io.open(path, "rb")
  if not file then
    return nil, "can not attach " .. problem
  end
  local text = file:read("*a")
  file:close()
  if not text then
    return nil, ("can not attach %s: it is no file"):format(shown)
  end
  if text:find("%z") or not is_utf8(text) then
    return nil, ("can not attach %s: it is no UTF-8 text"):format(shown)
  elseif vim.trim(text) == "" then
    return nil, ("can not attach %s: it is empty"):format(shown)
  end
  return { type = "file", uri = vim.uri_from_fname(path), text = (text:gsub("\n$", "")) }
end

--- Returns the quickfix list, as it is shown.
---@return convls.protocol.ContextItem?, string? problem
function M.quickfix()
  local list = vim.fn.getqflist({ items = 0, title = 0 })
  if #list.items == 0 then
    return nil, "the quickfix list is empty"
  end
  local lines = { list.title ~= "" and list.title or nil }
  for _, item in ipairs(list.items) do
    local where = ""
    if item.valid == 1 and item.bufnr > 0 then
      where = ("%s:%d:%d: "):format(vim.fn.fnamemodify(vim.fn.bufname(item.bufnr), ":~:."), item.lnum, item.col)
    end
    lines[#lines + 1] = where .. vim.trim(item.text)
  end
  return { type = "quickfix", text = table.concat(lines, "\n") }
end

--- Returns the diagnostics of a buffer, each with the line that it is about.
---@param buf integer
---@return convls.protocol.ContextItem?, string? problem
function M.diagnostics(buf)
  local found = vim.diagnostic.get(buf)
  if #found == 0 then
    return nil, "the buffer has no diagnostics"
  end
  table.sort(found, function(a, b)
    return a.lnum < b.lnum
  end)
  local lines = {}
  for _, d in ipairs(found) do
    local severity = (vim.diagnostic.severity[d.severity] or "hint"):lower()
    local message = d.message:gsub("%s*\n%s*", " ")
    lines[#lines + 1] = ("%d:%d: %s: %s%s"):format(
      d.lnum + 1,
      d.col + 1,
      severity,
      message,
      d.source and (" (%s)"):format(d.source) or ""
    )
    local code = vim.api.nvim_buf_get_lines(buf, d.lnum, d.lnum + 1, false)[1]
    if code then
      lines[#lines + 1] = "    " .. vim.trim(code)
    end
  end
  local name = vim.api.nvim_buf_get_name(buf)
  return { type = "diagnostics", uri = name ~= "" and vim.uri_from_bufnr(buf) or nil, text = table.concat(lines, "\n") }
end

--- Attaches what `:Convls attach` names.
---@param call convls.Call
function M.run(call)
  local chats = require("convls.chat")
  local buf, kind = vim.api.nvim_get_current_buf(), call.args[1]
  local rest = vim.trim((call.text:gsub("^%S+", "", 1)))
  if chats.of(buf) and (kind ~= "file" and kind ~= "quickfix") then
    -- From inside a chat the file beside it is meant.
    local alternate = vim.fn.bufnr("#")
    if alternate < 1 or chats.of(alternate) then
      return vim.notify(
        "convls: go to the buffer to attach, or name a file: :Convls attach file PATH",
        vim.log.levels.WARN
      )
    end
    buf = alternate
  end
  local item, problem
  if kind == nil or kind == "selection" then
    if call.range and not chats.of(vim.api.nvim_get_current_buf()) then
      item = M.selection(buf, call.range[1], call.range[2])
    elseif kind == nil then
      item = M.buffer(buf)
    else
      problem = "select something first: :'<,'>Convls attach"
    end
  elseif kind == "buffer" then
    item = M.buffer(buf)
  elseif kind == "file" then
    if rest == "" then
      problem = "name the file: :Convls attach file PATH"
    else
      item, problem = M.file(rest)
    end
  elseif kind == "quickfix" then
    item, problem = M.quickfix()
  elseif kind == "diagnostics" then
    item, problem = M.diagnostics(buf)
  else
    problem = ("%q can not be attached: one of %s can"):format(kind, table.concat(M.kinds, ", "))
  end
  chats.with(function(chat)
    chat:attach(item, problem)
  end)
end

return M
