-- A configuration with this plugin alone, for reports of bugs:
--   nvim --clean -u editors/neovim/scripts/minimal.lua
local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h")
vim.opt.runtimepath:prepend(here)
vim.g.convls = {
  -- what you have set goes here
}
