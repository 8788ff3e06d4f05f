-- What the pictures of docs/neovim.md show: the settings of a Neovim, and a function for
-- each picture, which brings it to the screen. docs/neovim.sh calls them one after the
-- other.

vim.opt.runtimepath:prepend(vim.env.SCENE_PLUGIN)
vim.g.convls = { cmd = { vim.env.SCENE_PROGRAM, "--data-dir", vim.env.SCENE_STORE } }
vim.o.termguicolors = true
vim.o.number = true
vim.o.ruler = false
vim.o.showcmd = false
vim.o.swapfile = false
vim.o.shadafile = "NONE"
vim.o.fillchars = "eob: "
vim.opt.shortmess:append("I")
vim.o.statusline = " %t"

-- A view that is asked for comes a moment later.
local function await(what, ready)
  local ok = vim.wait(20000, function()
    local fine, found = pcall(ready)
    return fine and found
  end, 20)
  if not ok then
    error("never came: " .. what)
  end
end

local function chat()
  return require("convls.chat").current()
end

local function context()
  return require("convls.context").current()
end

local function graph()
  return require("convls.graph").current()
end

local scene = {}

function scene.chat()
  vim.cmd("Convls chat depots")
  await("the transcript", function()
    return chat().session.connected and #chat().session.rows > 10
  end)
  vim.cmd("vertical resize 76")
  vim.cmd("wincmd p")
  vim.cmd("14,16Convls attach")
  vim.cmd("wincmd p")
  await("the tokens of what is attached", function()
    return chat().attachments[1].tokens
  end)
  chat().view:set_prompt({ "Forty-eight copies: is that enough if the disk is full?" })
  vim.cmd("normal! G$zb")
end

function scene.context()
  vim.cmd("Convls detach")
  vim.cmd("only")
  vim.fn.search([[^## You\n.*same depot]], "b")
  vim.cmd("normal! k")
  vim.cmd("Convls compact here")
  await("the summary", function()
    return chat().session:last("summary") and not chat().session.rows_busy
  end)
  chat().view:set_prompt({ "Write the migration for that, with a test." })
  vim.cmd("normal! G$zb")
  vim.cmd("Convls context")
  await("the entries", function()
    return context().entries[2].kind == "summary" and context().entries[5].why == "draft"
  end)
  vim.cmd("resize 8")
  vim.fn.search("2 summary")
  vim.cmd("wincmd p")
  vim.cmd("normal! zb")
  vim.cmd("wincmd p")
end

function scene.summary()
  vim.cmd("close")
  vim.cmd("normal! gg")
  vim.fn.search("^## Summary")
  vim.cmd("redraw")
  vim.cmd("Convls hover")
  await("the float", function()
    return vim.bo.filetype == "convls-float"
  end)
end

function scene.graph()
  vim.cmd("close")
  vim.cmd("Convls graph")
  await("the graph", function()
    return graph().view
  end)
  vim.cmd("only")
  vim.fn.winrestview({ topline = 1 })
end

function scene.ghosts()
  vim.fn.search("◎")
  vim.cmd("Convls expand")
  await("the ghosts", function()
    return not graph().loading and vim.iter(graph().view.rows):any(function(row)
      return row.ghost
    end)
  end)
end

--- Brings a picture to the screen, and returns what kept it from that.
---@param name string
---@return string
function _G.Show(name)
  vim.o.cmdheight = 1
  local ok, problem = pcall(scene[name])
  -- Nothing of what was told on the way stands below the picture.
  vim.o.cmdheight = 0
  vim.cmd("echo '' | redraw!")
  return ok and "" or problem
end

--- Goes to the light or the dark colours, and returns the one of the background. When the
--- terminal has a title, all that comes before it has been drawn.
---@param background "light"|"dark"
---@param title string
---@return string
function _G.Colours(background, title)
  vim.o.background = background
  vim.cmd("redraw!")
  vim.o.titlestring = title
  vim.o.title = true
  return ("%06x"):format(vim.api.nvim_get_hl(0, { name = "Normal" }).bg)
end
