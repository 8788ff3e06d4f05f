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

-- The session that is worked on, or nil.
local function current()
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

--- Makes a summary.
---@param words string[]
function M.run(words)
  local session = current()
  if not session then
    return
  end
  local params = spec(words)
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
          ("the summary holds: its %s are as they were (%s)"):format(
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

-- discard tells the server that a draft is not wanted. That it is gone already is fine.
local function discard(session, draft)
  if server.status().state == "ready" then
    session:change("convls/compaction/discard", { draft_id = draft.draft_id }, function() end)
  end
end

-- How long :w waits for the server, in ms: no model is asked.
local PATIENCE = 10000

-- commit writes the draft as the summary that stands. It waits, as :w does for a disk,
-- so that :wq and :x work.
local function commit(session, draft, buf)
  local text = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), "\n")
  local done = false
  session:change("convls/compaction/commit", {
    draft_id = draft.draft_id,
    text = text ~= draft.shown and text or nil,
  }, function(err, result)
    done = true
    if err then
      return errors.show(err, "committing the draft")
    end
    if ended(result) and vim.api.nvim_buf_is_valid(buf) then
      draft.committed = true
      vim.bo[buf].modified = false
      vim.schedule(function()
        if vim.api.nvim_buf_is_valid(buf) then
          vim.api.nvim_buf_delete(buf, { force = true })
        end
      end)
    end
  end)
  vim.wait(PATIENCE, function()
    return done
  end, 5)
end

-- edit opens a draft in a buffer: `:w` commits it, and to close it discards it.
local function edit(session, draft)
  -- The first line is for the model, and the server puts it back.
  draft.shown = (draft.text:gsub("^%[compacted checkpoint%]%s*", ""))
  local buf = window.buffer(("convls:/draft/%s/%s.md"):format(session.id, draft.draft_id))
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(draft.shown, "\n", { plain = true }))
  vim.bo[buf].buftype = "acwrite"
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].swapfile = false
  vim.bo[buf].modified = false
  vim.bo[buf].filetype = "markdown"
  local release = session:watch(function() end) -- the session stays known while the draft does
  vim.api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buf,
    callback = function()
      commit(session, draft, buf)
    end,
  })
  vim.api.nvim_create_autocmd("BufUnload", {
    buffer = buf,
    once = true,
    callback = function()
      if not draft.committed then
        discard(session, draft)
      end
      release()
    end,
  })
  window.show(buf)
  local wo = window.dress(vim.api.nvim_get_current_win())
  wo.wrap, wo.linebreak, wo.breakindent = true, true, true
  if config.get().winbar then
    vim.wo[0][0].winbar = (" Summary of %s · %s to %s tokens · :w commits it, :bd! discards it"):format(
      render.counted(draft.covered, "message"),
      render.short(draft.tokens_before),
      render.short(draft.tokens_after)
    )
  end
end

--- Makes a draft and opens it to be edited.
---@param words string[]
function M.draft(words)
  local session = current()
  if not session then
    return
  end
  local params = spec(words)
  params.draft, params.wait = true, true
  session:change("convls/compaction/run", params, function(err, result)
    if err then
      return errors.show(err, "making the draft")
    end
    if result.draft then
      return edit(session, result.draft)
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
