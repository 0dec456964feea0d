import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { api } from '../api/api.ts'
import type { Problem } from '../api/problem.ts'
import type { Mistake, Preview, RuleDocument, Split, Where } from '../api/types.ts'
import { formatNumber } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'
import { problemOf, Refusal, useAnswer } from '../parts/answer.tsx'
import { Sheet } from '../parts/sheet.tsx'
import { showDiff } from './code-editor.ts'
import { drafts } from './drafts.ts'
import { mergeTexts } from './merge-texts.ts'
import { ReplayLog } from './replay-log.tsx'

interface ReviewProps {
  readonly where: Where
  readonly onSaved: () => void
  readonly onBack: () => void
}

/** The last look before a change is in force: the difference, and what it would have done. */
export function Review({ where, onSaved, onBack }: ReviewProps): JSX.Element {
  const { editor: told } = messages.value
  const keeper = drafts[where]
  const { base, text } = keeper.draft.value!
  const [theirs, setTheirs] = useState<RuleDocument | undefined>(undefined)
  const [problem, setProblem] = useState<Problem | undefined>(undefined)
  const [isSaving, setSaving] = useState(false)
  const [conflicts, setConflicts] = useState(0)

  const save = async () => {
    setSaving(true)
    try {
      const { version } = await api.save(where, text, base.version)
      keeper.saved({ ...base, text, version })
      onSaved()
    } catch (error) {
      const refusal = problemOf(error)
      const current = refusal.body.current as Pick<RuleDocument, 'text' | 'version'> | undefined
      if (refusal.status === 409 && current !== undefined) setTheirs({ ...base, ...current })
      else setProblem(refusal)
    } finally {
      setSaving(false)
    }
  }

  if (theirs !== undefined) {
    return (
      <Sheet title={told.conflictTitle} onBack={onBack}>
        <p role="alert">{told.conflict}</p>
        <Difference before={theirs.text} after={text} label={`${told.theirs} → ${told.yours}`} />
        <div class="actions">
          <button
            type="button"
            onClick={() => {
              const merged = mergeTexts(base.text, text, theirs.text)
              keeper.replace(theirs, merged.text)
              setConflicts(merged.conflicts)
              setTheirs(undefined)
            }}
          >
            {told.keepMine}
          </button>
          <button
            type="button"
            class="quiet"
            onClick={() => {
              keeper.replace(theirs, theirs.text)
              onBack()
            }}
          >
            {told.takeTheirs}
          </button>
        </div>
      </Sheet>
    )
  }
  return (
    <Sheet title={told.reviewTitle} onBack={onBack}>
      {conflicts > 0 && <p role="alert">{messages.value.editor.mergeConflicts(conflicts)}</p>}
      <Difference before={base.text} after={text} label={told.diff} />
      <Foretold where={where} text={text} />
      <ReplayLog where={where} text={text} />
      {problem && <Refusal problem={problem} />}
      {problem && <ServerMistakes problem={problem} />}
      <div class="actions">
        <button type="button" disabled={isSaving} onClick={save}>
          {told.save}
        </button>
        <button type="button" class="quiet" onClick={onBack}>
          {told.back}
        </button>
      </div>
    </Sheet>
  )
}

function Difference({ before, after, label }: { before: string; after: string; label: string }): JSX.Element {
  const host = useRef<HTMLDivElement>(null)
  const { unchangedLines: unchanged } = messages.value.editor
  useEffect(() => showDiff(host.current!, { before, after, label, unchanged }), [before, after, unchanged])
  return (
    <section aria-label={label}>
      <h3>{label}</h3>
      <div class="code diff" ref={host} />
    </section>
  )
}

function Foretold({ where, text }: { where: Where; text: string }): JSX.Element {
  const { editor: told, loading } = messages.value
  const { answer, problem } = useAnswer(() => api.preview(where, text), [where, text])
  return (
    <section aria-label={told.preview} class="foretold">
      <h3>{told.preview}</h3>
      {problem && (
        <p class="hush">
          {told.previewFailed} {problem.message}
        </p>
      )}
      {!problem && answer === undefined && <p class="hush">{loading}</p>}
      {answer && (answer.calls === 0 ? <p class="empty">{told.previewNone}</p> : <Effects preview={answer} />)}
    </section>
  )
}

function Effects({ preview }: { preview: Preview }): JSX.Element {
  const { editor: told, columns } = messages.value
  const changed = preview.rules.filter(({ before, after }) => before.refused !== after.refused)
  return (
    <>
      <p class="hush">
        {told.previewOf(formatNumber(preview.calls))}
        {preview.sampled && ` (${told.previewSampled})`}
      </p>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">{columns.rule}</th>
            <th scope="col" class="numeric">
              {told.before}
            </th>
            <th scope="col" class="numeric">
              {told.after}
            </th>
            <th scope="col" class="numeric">
              ±
            </th>
          </tr>
        </thead>
        <tbody>
          {changed.slice(0, 100).map(({ id, before, after }) => (
            <Effect key={id} title={id} before={before} after={after} />
          ))}
          <Effect title={told.total} before={preview.total.before} after={preview.total.after} />
        </tbody>
      </table>
    </>
  )
}

function Effect({ title, before, after }: { title: string; before: Split; after: Split }): JSX.Element {
  const { editor: told } = messages.value
  const difference = after.refused - before.refused
  const sign = difference > 0 ? '+' : ''
  return (
    <tr>
      <th scope="row">{title}</th>
      <td class="numeric">{formatNumber(before.refused)}</td>
      <td class="numeric">{formatNumber(after.refused)}</td>
      <td class={`numeric ${difference > 0 ? 'more' : difference < 0 ? 'fewer' : ''}`}>
        {difference === 0 ? told.same : `${sign}${formatNumber(difference)}`}
      </td>
    </tr>
  )
}

/** What the gateway found that the check while writing had not. */
function ServerMistakes({ problem }: { problem: Problem }): JSX.Element {
  const { editor: told } = messages.value
  const mistakes = (problem.body.mistakes ?? []) as readonly Mistake[]
  return (
    <ul class="mistakes">
      {mistakes.map(({ line, column, message }) => (
        <li key={`${line}:${column}`}>
          {told.line(line)}: {message}
        </li>
      ))}
    </ul>
  )
}
