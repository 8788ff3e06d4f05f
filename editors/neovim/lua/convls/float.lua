--- Floats: read-only text beside what it is about, whose lines may lead somewhere.
local M = {}

--- A line of a float: pieces of text with their highlight, and what it leads to.
---@class convls.FloatLine
---@field [integer] [string, string?]
---@field id? string the node that it is about

local ns = vim.api.nvim_create_namespace("convls.float")

--- Opens a float and goes into it. `q` and `<Esc>` close it; so does leaving it.
---@param lines convls.FloatLine[]
---@param options { title: string, go?: fun(id: string) } go: where `<CR>` on a line leads
---@return integer win
function M.open(lines, options)
  local buf = vim.api.nvim_create_buf(false, true)
  local texts, width = {}, vim.fn.strdisplaywidth(options.title) + 4
  for i, line in ipairs(lines) do
    local text = ""
    for _, piece in ipairs(line) do
      text = text .. (piece[1]:gsub("[\r\n]+", " "))
    end
    texts[i] = text
    width = math.max(width, vim.fn.strdisplaywidth(text))
  end
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, texts)
  for i, line in ipairs(lines) do
    local col = 0
    for _, piece in ipairs(line) do
      local last = col + #(piece[1]:gsub("[\r\n]+", " "))
      if piece[2] and last > col then
        vim.api.nvim_buf_set_extmark(buf, ns, i - 1, col, { end_col = last, hl_group = piece[2] })
      end
      col = last
    end
  end
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].filetype = "convls-float"
  width = math.min(width, 84, vim.o.columns - 4)
  local height = 0
  for _, text in ipairs(texts) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(text) / width))
  end
  local win = vim.api.nvim_open_win(buf, true, {
    relative = "cursor",
    row = 1,
    col = 0,
    width = math.max(width, 20),
    height = math.max(1, math.min(height, math.floor(vim.o.lines * 0.7))),
    border = "rounded",
    style = "minimal",
    title = " " .. options.title .. " ",
  })
  local wo = vim.wo[win]
  wo.wrap, wo.linebreak, wo.breakindent, wo.breakindentopt = true, true, true, "shift:2"
  wo.cursorline = options.go ~= nil
  local function close()
    if vim.api.nvim_win_is_valid(win) then
      vim.api.nvim_win_close(win, true)
    end
  end
  for _, key in ipairs({ "q", "<Esc>", "K" }) do
    vim.keymap.set("n", key, close, { buffer = buf, nowait = true, desc = "convls: close" })
  end
  if options.go then
    for i, line in ipairs(lines) do
      if line.id then
        vim.api.nvim_win_set_cursor(win, { i, 0 })
        break
      end
    end
    vim.keymap.set("n", "<CR>", function()
      local line = lines[vim.api.nvim_win_get_cursor(win)[1]]
      if line and line.id then
        close()
        options.go(line.id)
      end
    end, { buffer = buf, nowait = true, desc = "convls: go to the message" })
  end
  vim.api.nvim_create_autocmd("WinLeave", { buffer = buf, once = true, callback = vim.schedule_wrap(close) })
  return win
end

return M
