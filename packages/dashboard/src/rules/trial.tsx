import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../api/api.ts'
import type { Rule, Trial as RunningTrial } from '../api/generated.ts'
import type { Problem } from '../api/problem.ts'
import { mayChange } from '../api/session.ts'
import { Sparkline } from '../charts/sparkline.tsx'
import { Applied, type AppliedChange } from '../editor/applied.tsx'
import { ringOf, second } from '../figures/live.ts'
import { SECONDS } from '../figures/ring.ts'
import { formatDuration, formatNumber, formatShare } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { problemOf, Refusal, useAnswer } from '../parts/answer.tsx'

interface TrialProps {
  readonly rule: Rule
  readonly isOpen: boolean
  readonly onUndo: (change: AppliedChange) => void
}

/** Shows a change of a rule that runs in shadow: started, compared with the rule, and put in force or discarded. */
export function Trial({ rule, isOpen, onUndo }: TrialProps): JSX.Element | null {
  const { rules: texts } = viewMessages.value
  const { answer: trials, again } = useAnswer(() => api.trials(), [rule.id])
  const [text, setText] = useState(rule.text)
  const [said, setSaid] = useState('')
  const [applied, setApplied] = useState<AppliedChange | undefined>(undefined)
  const [problem, setProblem] = useState<Problem | undefined>(undefined)
  const running = trials?.find(trial => trial.rule === rule.id)
  const act = (action: Promise<unknown>, sentence: string) =>
    action.then(
      () => {
        setProblem(undefined)
        setSaid(sentence)
        again()
      },
      error => setProblem(problemOf(error)),
    )
  const accept = async ({ id }: RunningTrial) => {
    const { text: before, version } = await api.document(rule.where)
    await api.acceptTrial(id, version)
    setApplied({ where: rule.where, before, after: (await api.document(rule.where)).text })
  }
  return (
    <>
      <Applied text={said} onUndo={applied && (() => onUndo(applied))} />
      {running !== undefined && (
        <div class="trial">
          <p>
            {texts.tryRuns} <code>{rule.id}~trial</code>
          </p>
          <Comparison rule={rule} trial={running} />
          {mayChange.value && (
            <div class="actions">
              <button type="button" onClick={() => act(accept(running), texts.tryAccepted)}>
                {texts.tryAccept}
              </button>
              <button
                type="button"
                class="quiet"
                onClick={() =>
                  act(
                    api.endTrial(running.id).then(() => setApplied(undefined)),
                    texts.tryEnded,
                  )
                }
              >
                {texts.tryEnd}
              </button>
            </div>
          )}
        </div>
      )}
      {running === undefined && isOpen && (
        <form
          class="trial"
          onSubmit={event => {
            event.preventDefault()
            act(api.try(rule.id, text), '')
          }}
        >
          <label>
            <span>{texts.tryIntro}</span>
            <textarea
              rows={Math.min(14, text.split('\n').length + 1)}
              spellcheck={false}
              value={text}
              onInput={event => setText(event.currentTarget.value)}
            />
          </label>
          <button type="submit">{texts.tryStart}</button>
        </form>
      )}
      {problem && <Refusal problem={problem} />}
    </>
  )
}

/** Shows the rule and the candidate beside each other, over the same seconds, from the second on in which the trial began. */
function Comparison({ rule, trial }: { rule: Rule; trial: RunningTrial }): JSX.Element {
  const { rules: texts, columns } = viewMessages.value
  const now = second.value
  const length = Math.max(1, Math.min(SECONDS, now - Math.floor((trial.since ?? 0) / 1000) + 1))
  const sides = [
    { title: texts.inForce, id: rule.id, text: rule.text, refused: 'refused' },
    { title: texts.candidate, id: trial.id, text: trial.text, refused: 'shadowRefused' },
  ] as const
  return (
    <>
      <p class="hush">
        {texts.tryWindow(formatDuration(length * 1000))} {texts.trySees}
      </p>
      <div class="sides">
        {sides.map(({ title, id, text, refused: name }) => {
          const ring = ringOf(id)
          const refused = ring?.sum(now, length, name) ?? 0
          // a call that a rule in shadow would refuse has passed
          const calls = (ring?.sum(now, length, 'allowed') ?? 0) + (name === 'refused' ? refused : 0)
          return (
            <section key={id} aria-label={title}>
              <h3>{title}</h3>
              <pre class="yaml">{text}</pre>
              <dl class="facts">
                <div data-fact="calls">
                  <dt>{columns.calls}</dt>
                  <dd>{formatNumber(calls)}</dd>
                </div>
                <div data-fact="refused">
                  <dt>{name === 'refused' ? columns.refused : texts.wouldRefuse}</dt>
                  <dd>
                    {formatNumber(refused)} ({formatShare(calls === 0 ? 0 : refused / calls)})
                  </dd>
                </div>
              </dl>
              <Sparkline rule={id} />
            </section>
          )
        })}
      </div>
    </>
  )
}
