import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../api/api.ts'
import type { LogReplay, Range, Where } from '../api/generated.ts'
import { formatNumber } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { problemOf } from '../parts/answer.tsx'

/** Longer logs are for the command line. */
const MOST_BYTES = 1024 * 1024

/** Shows the effect that the document would have had on an access log: one that is chosen here, or the gateway's own. */
export function ReplayLog({ where, text }: { readonly where: Where; readonly text: string }): JSX.Element {
  const { editor: texts, loading } = viewMessages.value
  const [answer, setAnswer] = useState<LogReplay | undefined>(undefined)
  const [trouble, setTrouble] = useState('')
  const [isAsking, setAsking] = useState(false)

  const ask = async (log: string | undefined) => {
    setAsking(true)
    setTrouble('')
    setAnswer(undefined)
    try {
      setAnswer(await api.replay(where, text, log))
    } catch (error) {
      setTrouble(problemOf(error).message)
    } finally {
      setAsking(false)
    }
  }
  const choose = async (file: File | undefined) => {
    if (file === undefined) return
    if (file.size > MOST_BYTES) setTrouble(texts.replayTooLong)
    else await ask(await file.text())
  }

  return (
    <section aria-label={texts.replayLog} class="replay-log">
      <h3>{texts.replayLog}</h3>
      <div class="actions">
        <label>
          {texts.replayChoose}{' '}
          <input type="file" disabled={isAsking} onChange={event => void choose(event.currentTarget.files?.[0])} />
        </label>
        <button type="button" class="quiet" disabled={isAsking} onClick={() => void ask(undefined)}>
          {texts.replayOwn}
        </button>
      </div>
      {isAsking && <p class="hush">{loading}</p>}
      {trouble !== '' && <p role="alert">{trouble}</p>}
      {answer && <Replayed replayed={answer} />}
    </section>
  )
}

function Replayed({ replayed }: { readonly replayed: LogReplay }): JSX.Element {
  const { editor: texts } = viewMessages.value
  const { calls, refused, rules, unjudged, notes, format, lines, bad } = replayed
  return (
    <>
      <p>
        {texts.replayed(formatNumber(lines), format, formatNumber(bad))}{' '}
        {texts.replayRefused(formatNumber(calls), rangeOf(refused))}
      </p>
      {rules.map(rule => (
        <details key={rule.id}>
          <summary>
            {rule.id}: {texts.replayRefused(formatNumber(rule.calls), rangeOf(rule.refused))}
          </summary>
          {/* made by the gateway: SVG with escaped texts, and no scripts */}
          <div class="replay-plots" dangerouslySetInnerHTML={{ __html: rule.plots }} />
        </details>
      ))}
      <ul class="hush">
        {unjudged.map(({ id, missing, remedy }) => (
          <li key={id}>
            {texts.replayUnjudged(id, missing.join(', '))} {remedy}
          </li>
        ))}
        {notes.map(note => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </>
  )
}

function rangeOf({ least, most }: Range): string {
  return least === most ? formatNumber(most) : `${formatNumber(least)} – ${formatNumber(most)}`
}
