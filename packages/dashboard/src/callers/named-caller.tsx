import type { JSX } from 'preact'
import type { Rule } from '../api/generated.ts'
import { viewMessages } from '../i18n/views/index.ts'

interface NamedCallerProps {
  /** Rules that count by one dimension. */
  readonly rules: readonly Rule[]
  readonly rule: Rule
  readonly value: string
  /** Returns the label of the field, by the name of the dimension. */
  readonly label: (by: string) => string
  readonly onRule: (id: string) => void
  readonly onValue: (value: string) => void
}

/** Shows the fields that name a caller who is not in the list: a rule, and the value that it counts by. */
export function NamedCallerFields({ rules, rule, value, label, onRule, onValue }: NamedCallerProps): JSX.Element {
  const by = rule.by[0] ?? ''
  return (
    <>
      <label>
        {viewMessages.value.columns.rule}{' '}
        <select value={rule.id} onChange={event => onRule(event.currentTarget.value)}>
          {rules.map(({ id }) => (
            <option key={id}>{id}</option>
          ))}
        </select>
      </label>
      <label>
        {by}{' '}
        <input
          value={value}
          aria-label={label(by)}
          spellcheck={false}
          autocapitalize="off"
          onInput={event => onValue(event.currentTarget.value)}
        />
      </label>
    </>
  )
}
