import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { api } from '../api/api.ts'
import type { Problem } from '../api/problem.ts'
import type { Rule } from '../api/types.ts'
import { goTo } from '../route.ts'
import { words } from '../words/index.ts'
import { problemOf, Refusal, useAnswer } from './answer.tsx'
import { byText, limitText } from './limit-text.ts'

/** One rule in full, and the way to change it or to try a change. */
export function RuleDetails({ rule, onClose }: { rule: Rule; onClose: () => void }): JSX.Element {
  const { rules: texts } = words.value
  const [isTrying, setTrying] = useState(false)
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  const facts: [string, string][] = [
    [words.value.columns.limit, `${limitText(rule)}, ${byText(rule)}`],
    [texts.matches, matchText(rule.match) || texts.allCalls],
    [texts.algorithm, rule.algorithm],
    [texts.counted, rule.count === 'distributed' ? texts.countedDistributed : texts.countedLocal],
    [texts.whenFull, rule.whenFull],
    ...(rule.count === 'distributed'
      ? ([
          [texts.whenStoreDown, rule.whenStoreDown],
          [texts.lease, rule.lease],
        ] as [string, string][])
      : []),
    [words.value.columns.origin, rule.origin ?? ''],
  ]
  return (
    <section class="panel details" aria-label={`${texts.details} ${rule.id}`}>
      <div class="panel-head">
        <h2 ref={heading} tabIndex={-1}>
          {rule.id}
        </h2>
        <button type="button" class="quiet" onClick={onClose}>
          {texts.close}
        </button>
      </div>
      <div class="details-body">
        <dl class="facts">
          {facts.map(([title, text]) => (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll, and a region that scrolls must be reachable by keyboard */}
        <pre class="yaml" tabIndex={0}>
          {rule.text}
        </pre>
      </div>
      <div class="actions">
        <button type="button" onClick={() => goTo('editor', rule.where, rule.id)}>
          {texts.edit}
        </button>
        <button type="button" class="quiet" aria-expanded={isTrying} onClick={() => setTrying(!isTrying)}>
          {texts.try}
        </button>
      </div>
      <Trial rule={rule} isOpen={isTrying} />
    </section>
  )
}

function Trial({ rule, isOpen }: { rule: Rule; isOpen: boolean }): JSX.Element | null {
  const { rules: texts } = words.value
  const { answer: trials, again } = useAnswer(() => api.trials(), [rule.id])
  const [text, setText] = useState(rule.text)
  const [problem, setProblem] = useState<Problem | undefined>(undefined)
  const running = trials?.find(trial => trial.rule === rule.id)
  const act = (action: Promise<unknown>) =>
    action.then(
      () => {
        setProblem(undefined)
        again()
      },
      error => setProblem(problemOf(error)),
    )
  if (running !== undefined) {
    return (
      <div class="trial">
        <p>
          {texts.tryRuns} <code>{rule.id}~trial</code>
        </p>
        <pre class="yaml">{running.text}</pre>
        <button type="button" onClick={() => act(api.endTrial(running.id))}>
          {texts.tryEnd}
        </button>
        {problem && <Refusal problem={problem} />}
      </div>
    )
  }
  if (!isOpen) return null
  return (
    <form
      class="trial"
      onSubmit={event => {
        event.preventDefault()
        act(api.try(rule.id, text))
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
      {problem && <Refusal problem={problem} />}
    </form>
  )
}

function matchText(match: object | undefined): string {
  return Object.entries(match ?? {})
    .map(
      ([name, value]) =>
        `${name} ${typeof value === 'string' ? value : Array.isArray(value) ? value.join(', ') : JSON.stringify(value)}`,
    )
    .join(' · ')
}
