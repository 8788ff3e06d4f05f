--- Where a view comes to the screen.
local config = require("convls.config")

local M = {}

local commands = { vsplit = "botright vsplit", split = "botright split", tab = "tab split" }

--- Shows a buffer in a window of its own, or in the present one, as the setting `open`
--- says.
---@param buf integer
function M.show(buf)
  local command = commands[config.get().open]
  if command then
    vim.cmd(command)
  end
  vim.api.nvim_win_set_buf(0, buf)
end

return M
