import type { JSX } from 'preact'
import type { Rule } from '../api/generated.ts'
import { viewMessages } from '../i18n/views/index.ts'

interface RuleChoiceProps {
  readonly rules: readonly Rule[]
  /** Empty for all rules. */
  readonly chosen: string
  readonly onChoose: (rule: string) => void
}

/** Shows a choice of one rule, or all of them. */
export function RuleChoice({ rules, chosen, onChoose }: RuleChoiceProps): JSX.Element {
  const { allRules, columns } = viewMessages.value
  return (
    <select aria-label={columns.rule} value={chosen} onChange={event => onChoose(event.currentTarget.value)}>
      <option value="">{allRules}</option>
      {rules.map(({ id }) => (
        <option key={id} value={id}>
          {id}
        </option>
      ))}
    </select>
  )
}
