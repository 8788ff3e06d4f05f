--- Virtual documents: buffers named convls:/… that the server, or a view of this plugin,
--- fills. The server's are Markdown, and follow the session while they are shown.
local bus = require("convls.bus")
local errors = require("convls.errors")
local server = require("convls.server")
local sessions = require("convls.session")
local window = require("convls.window")

local M = {}

---@class convls.Document
---@field buf integer
---@field uri string
---@field session_id string
---@field session? convls.Session from the first answer on
---@field node? string the node that it is of
---@field loading? boolean
---@field again? boolean
---@field stale? boolean
local Document = {}
Document.__index = Document

local by_buf = {} ---@type table<integer, convls.Document>

-- The views that are no documents of the server.
local views = { chat = "convls.chat", graph = "convls.graph", context = "convls.context" }

--- Returns the document of the current buffer, or nil.
---@return convls.Document?
function M.current()
  return by_buf[vim.api.nvim_get_current_buf()]
end

function Document:fill(text)
  local lines = vim.split(text, "\n", { plain = true })
  if lines[#lines] == "" then
    lines[#lines] = nil
  end
  local held = {}
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    held[win] = vim.api.nvim_win_call(win, vim.fn.winsaveview)
  end
  vim.bo[self.buf].modifiable = true
  vim.api.nvim_buf_set_lines(self.buf, 0, -1, false, lines)
  vim.bo[self.buf].modifiable = false
  vim.bo[self.buf].modified = false
  for win, saved in pairs(held) do
    vim.api.nvim_win_call(win, function()
      vim.fn.winrestview(saved)
    end)
  end
end

--- Asks for the text. What is asked for meanwhile is asked for once after it.
function Document:load()
  if self.loading then
    self.again = true
    return
  end
  self.loading, self.again, self.stale = true, false, false
  server.request("workspace/textDocumentContent", { uri = self.uri }, function(err, result)
    self.loading = false
    if by_buf[self.buf] ~= self then
      return
    end
    if not err then
      self:fill(result.text)
      self:follow()
    elseif errors.code(err) == errors.SERVER_LOST then
      self.stale = true
    else
      self:fill("> " .. errors.text(err))
    end
    if self.again then
      self:load()
    end
  end)
end

--- Follows the session: what is shown is asked for anew when something changes, what is
--- not shown when it comes to the screen.
function Document:follow()
  if self.session then
    return
  end
  self.session = sessions.get(self.session_id)
  self.unwatch = self.session:watch(function(what)
    if what ~= "event" and what ~= "loaded" then
      return
    elseif #vim.fn.win_findbuf(self.buf) > 0 then
      self:load()
    else
      self.stale = true
    end
  end)
end

local function adopt(uri, session_id, buf)
  local node = uri:match("^convls:/node/[^/]+/([^/?]+)%.md")
  local self = setmetatable({ buf = buf, uri = uri, session_id = session_id, node = node }, Document)
  by_buf[buf] = self
  window.own(buf)
  local function if_stale()
    if self.stale then
      self:load()
    end
  end
  local off = bus.on(bus.SERVER, function(what)
    if what == "ready" then
      if_stale()
    end
  end)
  local group = vim.api.nvim_create_augroup("convls.document." .. buf, {})
  vim.api.nvim_create_autocmd("BufWinEnter", {
    group = group,
    buffer = buf,
    callback = function()
      vim.wo[0][0].linebreak = true
      if_stale()
    end,
  })
  vim.api.nvim_create_autocmd("BufUnload", {
    group = group,
    buffer = buf,
    callback = function()
      by_buf[buf] = nil
      off()
      if self.unwatch then
        self.unwatch()
      end
      pcall(vim.api.nvim_del_augroup_by_id, group)
    end,
  })
  vim.bo[buf].filetype = "markdown"
  if require("convls.config").get().keymaps then
    for _, keys in ipairs({ "gf", "<CR>" }) do
      vim.keymap.set("n", keys, M.follow, { buffer = buf, nowait = true, desc = "convls: open the link at the cursor" })
    end
  end
  self:load()
end

--- Fills a buffer whose name begins with convls:/, when Neovim is to read it.
---@param buf integer
function M.read(buf)
  local uri = vim.api.nvim_buf_get_name(buf)
  local session, view = uri:match("^convls:/session/([^/?]+)/([%w]+)$")
  if session and views[view] then
    return require(views[view]).adopt(session, buf)
  end
  if vim.startswith(uri, "convls:/draft/") and require("convls.compact").read(buf) then
    return
  end
  local id = uri:match("^convls:/session/([^/?]+)/[^/]+$") or uri:match("^convls:/node/([^/?]+)/[^/]+$")
  if not id then
    -- A message would look like a fault of the autocommand.
    vim.bo[buf].buftype = "nofile"
    return Document.fill({ buf = buf }, ("> there is no %s: see :help convls-documents"):format(uri))
  end
  adopt(uri, id, buf)
end

--- Opens a document.
---@param uri string
function M.open(uri)
  local buf = vim.fn.bufadd(uri)
  vim.bo[buf].buflisted = true
  window.show(buf)
end

-- The names that a link may open: those of the documents and views. A name of another
-- shape could be one that an autocommand of Neovim does something else with.
local function is_ours(target)
  local rest = target:match("^convls:/%l+/[%w_-]+/[%w_-]+(.*)$")
  return rest == "" or rest == ".md" or rest ~= nil and rest:find("^%.md%?[%w_=&-]+$") ~= nil
end

-- open_link opens what a link leads to. A model may have written it: :edit would run a
-- program for term://, and read or fetch what other names say.
local function open_link(target)
  if is_ours(target) then
    return vim.cmd.edit(vim.fn.fnameescape(target))
  end
  local scheme = (target:match("^(%a[%w+.-]*):") or ""):lower()
  if (scheme == "http" or scheme == "https") and vim.ui.open then
    local _, failed = vim.ui.open(target)
    if failed then
      vim.notify("convls: " .. failed, vim.log.levels.ERROR)
    end
    return
  end
  local what = "a link to a file"
  if scheme == "convls" then
    what = "this convls: link"
  elseif scheme ~= "" then
    what = ("a link with %s:"):format(scheme)
  end
  vim.notify(("convls: %s is not opened, only documents of convls, http: and https:"):format(what), vim.log.levels.WARN)
end

--- Opens what the Markdown link at the cursor leads to; without one, the document whose
--- name stands there.
function M.follow()
  local line, col = vim.api.nvim_get_current_line(), vim.api.nvim_win_get_cursor(0)[2] + 1
  local function at_cursor(pattern)
    local from = 1
    while true do
      local first, last, target = line:find(pattern, from)
      if not first then
        return nil
      elseif first <= col and col <= last then
        return target
      end
      from = last + 1
    end
  end
  -- A title may come behind the target.
  local target = at_cursor("%[[^%]]*%]%(%s*<?([^%s)>]+)[^)]*%)") or at_cursor("(convls:/[%w/_.?=&-]*[%w/])")
  if not target then
    return vim.notify("convls: there is no link here", vim.log.levels.WARN)
  end
  open_link(target)
end

return M
