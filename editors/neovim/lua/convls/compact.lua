--- Compaction: making a summary, looking before, editing it as a draft, taking it back.
--- What is covered, and what follows from that, is the server's to say.
local config = require("convls.config")
local errors = require("convls.errors")
local float = require("convls.float")
local render = require("convls.chat.render")
local server = require("convls.server")
local window = require("convls.window")

local M = {}

local function tell(text, level)
  vim.notify("convls: " .. text, level or vim.log.levels.INFO)
end

-- A draft is the text of a summary that a person may edit before it stands.
---@class convls.SummaryDraft
---@field session convls.Session
---@field id string
---@field text string as it was made, without the line that is for the model
---@field range table the first and the last message that it is made from, and their number
---@field spec table what was asked for
---@field name string of its buffer
---@field buf integer
---@field loaded? boolean whether the buffer has the text
---@field release fun() lets the session go
---@field busy? boolean whether a commit is under way
---@field asked? { text: string, request_id: string } the commit that nobody answered yet
---@field lost? boolean whether the server did not take it, and will not
---@field done? boolean whether its text is somewhere else, and the buffer may go

local drafts = {} ---@type table<string, convls.SummaryDraft> by the names of their buffers

-- The session that is worked on, or nil.
local function current()
  local draft = drafts[vim.api.nvim_buf_get_name(0)]
  if draft then
    return draft.session
  end
  local session = require("convls.branch").here()
  return session
end

--- Returns what there is to say of a summary that was made. It fits into one line: a
--- longer message would have the person press a key.
---@param run { covered?: integer, tokens_before?: integer, tokens_after?: integer }
---@return string
function M.made(run)
  return ("%s summed up, %s to %s tokens (:Convls compact undo)"):format(
    render.counted(run.covered or 0, "message"),
    render.short(run.tokens_before or 0),
    render.short(run.tokens_after or 0)
  )
end

-- ended tells how a run ended, and returns whether a summary was made.
local function ended(result)
  if result.state == "finished" then
    tell(M.made(result))
    if #(result.raw_tips or {}) > 0 then
      tell(("%s that had the summary before read all again"):format(render.counted(#result.raw_tips, "branch")))
    end
    return true
  elseif result.state == "cancelled" then
    tell("the compaction was cancelled, nothing was changed")
  elseif result.error then
    tell("no summary was made: " .. errors.text(result.error), vim.log.levels.ERROR)
  end
  return false
end

-- spec says what to compact: `here` up to the message at the cursor, all other words are
-- what matters.
local function spec(words)
  local asked = {}
  if words[1] == "here" then
    table.remove(words, 1)
    local _, row = require("convls.branch").here()
    asked.up_to_id = row and row.id
  end
  local matters = table.concat(words, " ")
  asked.instructions = matters ~= "" and matters or nil
  return asked
end

-- run makes a summary.
local function run(session, params)
  params.wait = true
  session:change("convls/compaction/run", params, function(err, result)
    if err then
      return errors.show(err, "compacting")
    end
    if ended(result) and params.instructions and result.summariser == "extractive" then
      tell("built-in rules wrote it and did not read your words: set compaction.model")
    end
  end)
end

--- Makes a summary.
---@param words string[] what matters, or `here` and that
function M.run(words)
  local session = current()
  if session then
    run(session, spec(words))
  end
end

--- Makes a summary.
---@param words string[] what matters, whatever they are
function M.run_words(words)
  local session = current()
  if session then
    run(session, { instructions = #words > 0 and table.concat(words, " ") or nil })
  end
end

--- Ends the compaction that runs.
function M.cancel()
  local session = current()
  if session then
    session:change("convls/compaction/cancel", {}, function(err, result)
      if err then
        return errors.show(err, "cancelling the compaction")
      end
      if result.state == "finished" then
        tell("too late, it is finished (:Convls compact undo)")
      end
    end)
  end
end

--- Shows what a run would do. No model is asked.
---@param words string[]
function M.preview(words)
  local session = current()
  if not session then
    return
  end
  local params = spec(words)
  params.session_id = session.id
  params.limit = 1
  server.request("convls/compaction/preview", params, function(err, p)
    if err then
      return errors.show(err, "looking what a compaction would do")
    end
    local lines = {}
    local function add(text, group)
      lines[#lines + 1] = { { text, group } }
    end
    local why = p.why_not or ""
    if why ~= "" and p.covered == 0 then
      add("Nothing: " .. why .. ".", "ConvlsNotice")
      return float.open(lines, { title = "What :Convls compact would do" })
    end
    local covers = ("A summary would stand for %s"):format(render.counted(p.covered, "message"))
    if (p.previous_id or "") ~= "" then
      covers = covers .. (", %d of them new, in the place of the present one"):format(p.newly_covered)
    end
    add(covers .. ".")
    add(("%s would stay word for word."):format(render.counted(#p.kept_ids, "message")))
    add(
      ("The context would go from %s to about %s tokens."):format(
        render.short(p.tokens_before),
        render.short(p.tokens_after)
      )
    )
    if p.calls == 0 then
      add("Built-in rules would write it: no model is asked.")
    else
      add(("%s would write it, in %s."):format(p.summariser, render.counted(p.calls, "call")))
    end
    if why ~= "" then
      add("It would be refused: " .. why .. ".", "ConvlsError")
    end
    add("Nothing is deleted: the messages stay, and :Convls compact undo takes it back.", "ConvlsMeta")
    float.open(lines, { title = "What :Convls compact would do · q closes" })
  end)
end

-- with_list calls work with the session that is worked on, and its summaries.
local function with_list(work)
  local session = current()
  if not session then
    return
  end
  server.request("convls/compaction/list", { session_id = session.id }, function(err, result)
    if err then
      return errors.show(err, "listing the summaries")
    end
    work(session, result)
  end)
end

-- activate makes a summary the one that stands; nil for none.
local function activate(session, id, said)
  session:change("convls/compaction/activate", { summary_id = id ~= "" and id or nil }, function(err)
    if err then
      return errors.show(err, "choosing the summary")
    end
    tell(said)
  end)
end

--- Takes the present summary back: the one before it stands again, or none.
function M.undo()
  with_list(function(session, result)
    local step = result.undo
    if not step then
      return tell("no summary stands here: there is nothing to undo", vim.log.levels.WARN)
    end
    local now = (step.summary_id or "") ~= "" and "the summary before stands"
      or ("the model reads %s again"):format(render.counted(step.covered, "message"))
    activate(session, step.summary_id, ("undone, %s (:Convls compact redo)"):format(now))
  end)
end

--- Takes up again what was undone.
function M.redo()
  with_list(function(session, result)
    local step = result.redo
    if not step then
      return tell("there is no later summary to take up", vim.log.levels.WARN)
    end
    activate(
      session,
      step.summary_id,
      ("the summary of %s stands again"):format(render.counted(step.covered, "message"))
    )
  end)
end

local function state(summary)
  if summary.void then
    return "void"
  elseif summary.applies then
    return "stands here"
  elseif summary.undone then
    return "undone"
  elseif summary.active then
    return "stands on another branch"
  end
  return "does not stand"
end

--- Lets the person choose which summary stands.
function M.pick()
  with_list(function(session, result)
    if #result.summaries == 0 then
      return tell("there is no summary yet: :Convls compact makes one")
    end
    local clean = require("convls.graph.draw").clean
    local choices = vim.list_extend({ { none = true } }, result.summaries)
    vim.ui.select(choices, {
      prompt = "Summary",
      kind = "convls.summary",
      format_item = function(summary)
        if summary.none then
          return "none: the model reads every message"
        end
        local words = { summary.applies and "◀" or nil }
        words[#words + 1] = render.counted(summary.covered, "message")
        words[#words + 1] = ("(%s, %s)"):format(state(summary), summary.created_at:sub(1, 16):gsub("T", " "))
        words[#words + 1] = vim.fn.strcharpart(clean(summary.preview), 0, 60)
        return table.concat(words, " ")
      end,
    }, function(summary)
      if summary and summary.none then
        activate(session, nil, "no summary stands: the model reads every message")
      elseif summary then
        activate(
          session,
          summary.summary_id,
          ("the summary of %s stands"):format(render.counted(summary.covered, "message"))
        )
      end
    end)
  end)
end

-- with_summary calls work with the id of the summary at the cursor, or of the one that
-- stands here.
local function with_summary(work)
  local session, row = require("convls.branch").here()
  if session and row and row.kind == "summary" then
    return work(session, row.id)
  end
  with_list(function(listed, result)
    for _, summary in ipairs(result.summaries) do
      if summary.applies then
        return work(listed, summary.summary_id)
      end
    end
    tell("no summary stands here: :Convls compact makes one", vim.log.levels.WARN)
  end)
end

--- Shows the summary at the cursor, or the one that stands here.
function M.show()
  with_summary(function(session, id)
    require("convls.summary").show(session, id, M.go(session))
  end)
end

--- Returns what leads to a node from a view of the session: in a graph its row there,
--- otherwise its message in the chat.
---@param session convls.Session
---@return fun(id: string)
function M.go(session)
  local graph = require("convls.graph").current()
  return function(id)
    if graph then
      return graph:go_to(id)
    end
    require("convls.chat").open(session.id, function(chat)
      chat:go_to(id)
    end)
  end
end

--- Computes the fingerprint of a summary anew, and tells whether its messages are those
--- that it was made from.
function M.verify()
  with_summary(function(session, id)
    server.request("convls/compaction/verify", { session_id = session.id, summary_id = id }, function(err, result)
      if err then
        return errors.show(err, "verifying the summary")
      end
      if result.ok then
        return tell(
          ("the summary holds: what it read is as it was (%s, %s)"):format(
            render.counted(result.messages, "message"),
            result.computed:sub(1, 12)
          )
        )
      end
      local problems = #result.problems > 0 and table.concat(result.problems, "; ") or "the fingerprints differ"
      tell("the summary does not hold: " .. problems .. ". Next: :Convls compact rebuild", vim.log.levels.WARN)
    end)
  end)
end

--- Makes the summary again from the messages themselves.
---@param words string[]
function M.rebuild(words)
  with_summary(function(session, id)
    local instructions = table.concat(words, " ")
    session:change("convls/compaction/rebuild", {
      summary_id = id,
      instructions = instructions ~= "" and instructions or nil,
      wait = true,
    }, function(err, result)
      if err then
        return errors.show(err, "rebuilding the summary")
      end
      ended(result)
    end)
  end)
end

--- How long :w of a draft waits for the server, in ms: no model is asked.
M.patience = 10000

-- leave forgets a draft, and its buffer goes for good.
local function leave(draft)
  if drafts[draft.name] ~= draft then
    return
  end
  drafts[draft.name] = nil
  draft.release()
  if not draft.done and server.status().state == "ready" then
    -- That it is gone already is fine.
    draft.session:change("convls/compaction/discard", { draft_id = draft.id }, function() end)
  end
  if vim.api.nvim_buf_is_valid(draft.buf) then
    vim.api.nvim_buf_delete(draft.buf, { force = true })
  end
end

-- text_of returns what a person has made of a draft.
local function text_of(draft)
  return table.concat(vim.api.nvim_buf_get_lines(draft.buf, 0, -1, false), "\n")
end

-- What to do where the server takes a draft no more.
local next_step = {
  unknown_draft = "the text stays here; :Convls compact draft makes a new draft of the same messages, with this text",
  stale_compaction = "the text stays here; if there is another summary now: :Convls compact undo, then :w again; "
    .. "if not: :Convls compact draft",
}

-- commit writes the draft as the summary that stands. It waits, as :w does for a disk,
-- so that :wq and :x work. Where it does not succeed the buffer stays modified, and
-- Neovim does not close its window.
local function commit(draft)
  local bo = vim.bo[draft.buf]
  bo.modified = true
  local text = text_of(draft)
  if not text:find("%S") then
    return tell("an empty summary is not committed (u brings the text back, :bd! discards it)", vim.log.levels.ERROR)
  end
  local waiting = true
  if not draft.busy then
    draft.busy = true
    -- The same text goes with the same id again: the server that was lost may have
    -- written it.
    if not (draft.asked and draft.asked.text == text) then
      draft.asked = { text = text, request_id = server.request_id() }
    end
    draft.session:change("convls/compaction/commit", {
      draft_id = draft.id,
      request_id = draft.asked.request_id,
      text = text ~= draft.text and text or nil,
    }, function(err, result)
      draft.busy = false
      local code = errors.code(err)
      if code ~= errors.SERVER_LOST then
        draft.asked = nil
      end
      draft.lost = next_step[code] ~= nil
      draft.done = not err and ended(result)
      if vim.api.nvim_buf_is_loaded(draft.buf) then
        bo.modifiable, bo.modified = true, not draft.done
      end
      if err then
        err.hint = next_step[code]
        errors.show(err, "committing the draft")
      elseif draft.done and not waiting then
        vim.schedule(function()
          leave(draft)
        end)
      end
    end)
  end
  vim.wait(M.patience, function()
    return not draft.busy
  end, 5)
  waiting = false
  if draft.busy then
    -- What were written now would not be in the summary.
    bo.modifiable = false
    tell("the server has not answered yet: the commit is still under way, and you are told how it ends")
  elseif draft.done then
    -- Not before the autocommand is over: :wall writes a hidden buffer in a window that
    -- must stay until then.
    vim.schedule(function()
      leave(draft)
    end)
  end
end

-- copy writes the text to a file, as :w with the name of another file asks for. Neovim
-- itself writes a part of it.
local function copy(draft, buf, path)
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  local ok, failed = pcall(vim.fn.writefile, lines, path)
  if not ok then
    return tell((tostring(failed):gsub("^Vim:", "")), vim.log.levels.ERROR)
  end
  if path == vim.api.nvim_buf_get_name(buf) then -- by :saveas
    vim.bo[buf].modified = false
  end
  if not draft.done then
    tell(("%s written to %s, the draft is not committed"):format(render.counted(#lines, "line"), path))
  end
end

-- fill writes a draft into its buffer. It counts as modified until it is committed, so
-- that :x commits it, and Neovim does not end without a word.
local function fill(draft)
  local buf = draft.buf
  local bo = vim.bo[buf]
  bo.buftype, bo.bufhidden, bo.swapfile = "acwrite", "hide", false
  bo.modifiable = true
  local levels = vim.go.undolevels
  bo.undolevels = -1 -- nobody wants to undo the text that it begins with
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(draft.text, "\n", { plain = true }))
  bo.undolevels = levels
  bo.modifiable, bo.modified = not draft.busy, true
  bo.filetype = "markdown"
  draft.loaded = true
  local group = vim.api.nvim_create_augroup("convls.draft." .. buf, {})
  vim.api.nvim_create_autocmd("BufWriteCmd", {
    group = group,
    buffer = buf,
    callback = function(event)
      if event.match == draft.name then
        commit(draft)
      else
        copy(draft, buf, event.match)
      end
    end,
  })
  vim.api.nvim_create_autocmd("BufHidden", {
    group = group,
    buffer = buf,
    callback = function()
      if drafts[draft.name] == draft and draft.buf == buf and not draft.done then
        tell(("the draft is hidden, not committed: :b %d shows it again"):format(buf))
      end
    end,
  })
  vim.api.nvim_create_autocmd("BufUnload", {
    group = group,
    buffer = buf,
    callback = function()
      if draft.buf ~= buf then
        return
      end
      draft.loaded = false
      vim.schedule(function()
        if not draft.loaded then -- by :edit it is read again at once
          leave(draft)
        end
      end)
    end,
  })
end

--- Fills the buffer of a draft, when Neovim is to read it again, as by :edit.
---@param buf integer
---@return boolean whether it is the name of a draft
function M.read(buf)
  local draft = drafts[vim.api.nvim_buf_get_name(buf)]
  if not draft then
    return false
  end
  draft.buf = buf
  fill(draft)
  return true
end

-- edit opens a draft in a buffer: `:w` commits it, and to unload it discards it. It
-- takes the window of the draft whose text it takes over.
local function edit(session, made, asked, old)
  local draft = {
    session = session,
    id = made.draft_id,
    -- The first line is for the model, and the server puts it back.
    text = (made.text:gsub("^%[compacted checkpoint%]%s*", "")),
    range = made.manifest.source_range,
    spec = asked,
    name = ("convls:/draft/%s/%s.md"):format(session.id, made.draft_id),
    release = session:watch(function() end), -- the session stays known while the draft does
  } ---@type convls.SummaryDraft
  drafts[draft.name] = draft
  draft.buf = window.buffer(draft.name)
  fill(draft)
  local same = old and vim.deep_equal(old.range, draft.range)
  local win = same and vim.fn.win_findbuf(old.buf)[1]
  if same then
    vim.api.nvim_buf_set_lines(draft.buf, 0, -1, false, vim.api.nvim_buf_get_lines(old.buf, 0, -1, false))
    old.done = true
    tell("your text is in the new draft: :w commits it, u shows what the draft said")
  elseif old then
    tell(("the new draft is of other messages: your text stays in buffer %d"):format(old.buf), vim.log.levels.WARN)
  end
  if win then
    vim.api.nvim_set_current_win(win)
    vim.api.nvim_win_set_buf(win, draft.buf)
  else
    window.show(draft.buf)
  end
  if same then
    leave(old)
  end
  local wo = window.dress(vim.api.nvim_get_current_win())
  wo.wrap, wo.linebreak, wo.breakindent = true, true, true
  if config.get().winbar then
    vim.wo[0][0].winbar = (" Summary of %s · %s to %s tokens · :w commits it, :bd! discards it"):format(
      render.counted(made.covered, "message"),
      render.short(made.tokens_before),
      render.short(made.tokens_after)
    )
  end
end

-- kept returns a draft of a session that the server does not take any more: the one in
-- the current window first.
local function kept(session)
  local here = drafts[vim.api.nvim_buf_get_name(0)]
  if here and here.lost then
    return here
  end
  for _, draft in pairs(drafts) do
    if draft.session.id == session.id and draft.lost then
      return draft
    end
  end
end

--- Makes a draft and opens it to be edited. The text of a draft that the server does not
--- take any more goes into the new one, if that is made from the same messages, which
--- are asked for unless there are words.
---@param words string[]
function M.draft(words)
  local session = current()
  if not session then
    return
  end
  local old = kept(session)
  local asked = spec(words)
  if old and next(asked) == nil then
    asked = { up_to_id = old.range.last_id, instructions = old.spec.instructions }
  end
  local params = vim.tbl_extend("force", asked, { draft = true, wait = true })
  session:change("convls/compaction/run", params, function(err, result)
    if err then
      return errors.show(err, "making the draft")
    end
    if result.draft then
      return edit(session, result.draft, asked, old and drafts[old.name])
    end
    ended(result)
  end)
end

--- The words that may come first after `:Convls compact`, and what they do.
---@type table<string, fun(words: string[])>
M.verbs = {
  preview = M.preview,
  draft = M.draft,
  cancel = M.cancel,
  undo = M.undo,
  redo = M.redo,
  list = M.pick,
  show = M.show,
  verify = M.verify,
  rebuild = M.rebuild,
}

return M
