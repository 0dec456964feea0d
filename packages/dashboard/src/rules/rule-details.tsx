import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Rule } from '../api/generated.ts'
import { mayChange } from '../api/session.ts'
import type { AppliedChange } from '../editor/applied.tsx'
import { viewMessages } from '../i18n/views/index.ts'
import { goTo, hashOf } from '../route.ts'
import { byText, limitText } from './limit-text.ts'
import { Trial } from './trial.tsx'

interface RuleDetailsProps {
  readonly rule: Rule
  readonly onClose: () => void
  /** Opens the form of the rule. */
  readonly onChange: () => void
  readonly onUndo: (change: AppliedChange) => void
}

/** Shows one rule in full, and the way to change it or to try a change. */
export function RuleDetails({ rule, onClose, onChange, onUndo }: RuleDetailsProps): JSX.Element {
  const { rules: texts } = viewMessages.value
  const [isTrying, setTrying] = useState(false)
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  const facts: [string, string][] = [
    [viewMessages.value.columns.limit, `${limitText(rule)}, ${byText(rule)}`],
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
    [viewMessages.value.columns.origin, rule.origin ?? ''],
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
        {mayChange.value && (
          <button type="button" onClick={onChange}>
            {texts.change}
          </button>
        )}
        {mayChange.value && (
          <button type="button" class="quiet" onClick={() => goTo('editor', rule.where, rule.id)}>
            {texts.edit}
          </button>
        )}
        {mayChange.value && (
          <button type="button" class="quiet" aria-expanded={isTrying} onClick={() => setTrying(!isTrying)}>
            {texts.try}
          </button>
        )}
        <a class="button" href={hashOf('callers', rule.id)}>
          {texts.itsCallers}
        </a>
        <a class="button" href={hashOf('refusals', rule.id)}>
          {texts.itsRefusals}
        </a>
      </div>
      <Trial rule={rule} isOpen={isTrying} onUndo={onUndo} />
    </section>
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
