--- Where a view comes to the screen.
local config = require("convls.config")

local M = {}

local commands = { vsplit = "botright vsplit", split = "botright split", tab = "tab split" }

--- Makes a buffer that is listed, for a view.
---@param name string such as convls:/session/ID/chat
---@return integer
function M.buffer(name)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    -- One that a session file has brought back.
    if vim.api.nvim_buf_get_name(buf) == name then
      vim.bo[buf].buflisted = true
      return buf
    end
  end
  local buf = vim.api.nvim_create_buf(true, false)
  vim.api.nvim_buf_set_name(buf, name)
  return buf
end

--- Makes a buffer one that no file stands behind, and into which only its view writes.
---@param buf integer
function M.own(buf)
  local bo = vim.bo[buf]
  bo.buftype, bo.bufhidden, bo.swapfile = "nofile", "hide", false
  bo.modifiable, bo.undolevels = false, -1
end

--- Calls `close` when a buffer is unloaded: it has lost what its view needs, and goes for
--- good, unless it was read again meanwhile, as by :edit.
---@param buf integer
---@param close fun()
---@param read fun(): boolean whether it was read again
function M.on_unload(buf, close, read)
  vim.api.nvim_create_autocmd("BufUnload", {
    buffer = buf,
    once = true,
    callback = function()
      close()
      vim.schedule(function()
        if vim.api.nvim_buf_is_valid(buf) and not read() then
          vim.api.nvim_buf_delete(buf, { force = true })
        end
      end)
    end,
  })
end

--- Sets how a window shows a view: without what is for files.
---@param win integer
---@return table wo the options of the window, for this buffer alone
function M.dress(win)
  local wo = vim.wo[win][0]
  wo.number, wo.relativenumber, wo.spell = false, false, false
  wo.signcolumn, wo.foldcolumn = "no", "0"
  return wo
end

--- Sets how a window shows folds of a view: the first line as it is, with nothing behind
--- it. What else a person has in 'fillchars' stays.
---@param win integer
function M.fold(win)
  local wo = vim.wo[win][0]
  wo.foldmethod, wo.foldtext, wo.foldenable = "manual", "", true
  wo.fillchars = vim.go.fillchars .. (vim.go.fillchars ~= "" and "," or "") .. "fold: "
end

--- Makes the default maps of a view in its buffer: those that the actions name for it.
---@param buf integer
---@param view "keys"|"graph"|"context" the member of the actions
function M.map(buf, view)
  for _, action in ipairs(require("convls.actions").all()) do
    for _, keys in ipairs(action[view] or {}) do
      vim.keymap.set(keys[1], keys[2], function()
        action.run({ args = {}, text = "" })
      end, { buffer = buf, nowait = true, desc = "convls: " .. action.desc })
    end
  end
end

--- Shows a buffer in a window of its own, or in the present one, as the setting `open`
--- says. A view that is opened from another one goes below it, so that the columns do not
--- become narrower with each.
---@param buf integer
function M.show(buf)
  local open = config.get().open
  local command = commands[open]
  if open == "vsplit" and vim.startswith(vim.api.nvim_buf_get_name(0), "convls:/") then
    command = "belowright split"
  end
  if command and not pcall(vim.cmd, command) then
    -- There is no room for one more window: this one has to do.
    vim.notify("convls: there is no room for another window", vim.log.levels.WARN)
  end
  vim.api.nvim_win_set_buf(0, buf)
end

return M
