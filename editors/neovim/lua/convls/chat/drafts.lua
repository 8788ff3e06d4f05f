--- What was being written in chats that are closed: it comes back when they are opened
--- again, in this Neovim or, from a file in stdpath("state"), in a later one.
local M = {}

---@class convls.Draft
---@field prompt string[]
---@field attachments convls.Attachment[]
---@field editing? convls.Editing

local drafts = {} ---@type table<string, convls.Draft|false> by session; false: none any more
local saving = false

local function path()
  return vim.fs.joinpath(vim.fn.stdpath("state"), "convls-drafts.json")
end

-- read returns the drafts of the file. One that can not be read has none.
local function read()
  local file = io.open(path(), "rb")
  if not file then
    return {}
  end
  local ok, found = pcall(vim.json.decode, file:read("*a"))
  file:close()
  return ok and type(found) == "table" and found or {}
end

-- save writes the file anew: what other Neovims put there stays.
local function save()
  local all = read()
  for session, draft in pairs(drafts) do
    all[session] = draft or nil
  end
  if next(all) == nil then
    os.remove(path())
    return
  end
  vim.fn.mkdir(vim.fs.dirname(path()), "p")
  -- As long as it is not whole it has another name; nobody else may read it.
  local temporary = ("%s.%d"):format(path(), vim.uv.os_getpid())
  local fd = vim.uv.fs_open(temporary, "w", 384) -- 0600
  if fd then
    local ok = vim.uv.fs_write(fd, vim.json.encode(all))
    vim.uv.fs_close(fd)
    if ok then
      vim.uv.fs_rename(temporary, path())
    end
  end
end

local function save_at_the_end()
  if not saving then
    saving = true
    vim.api.nvim_create_autocmd("VimLeave", {
      group = vim.api.nvim_create_augroup("convls.drafts", {}),
      callback = save,
    })
  end
end

--- Keeps what is being written in a chat.
---@param session string
---@param draft convls.Draft
function M.keep(session, draft)
  local empty = vim.trim(table.concat(draft.prompt)) == "" and #draft.attachments == 0 and not draft.editing
  drafts[session] = not empty and draft or false
  save_at_the_end()
end

--- Forgets what was kept of a session where it is what was sent meanwhile.
---@param session string
---@param prompt string[]
function M.sent(session, prompt)
  if drafts[session] and vim.deep_equal(drafts[session].prompt, prompt) then
    drafts[session] = false
  end
end

--- Returns what was being written in a session, once.
---@param session string
---@return convls.Draft?
function M.take(session)
  local draft = drafts[session]
  if draft == nil then
    draft = read()[session]
  end
  drafts[session] = false
  if draft then
    save_at_the_end()
  end
  return draft or nil
end

return M
