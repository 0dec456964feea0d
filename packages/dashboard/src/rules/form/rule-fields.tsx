import type { JSX } from 'preact'
import { changeMessages } from '../../i18n/changes/index.ts'
import { BeyondFields, OutcomeFields } from './beyond-fields.tsx'
import { ByField, CallFields } from './call-fields.tsx'
import { CountingFields } from './counting-fields.tsx'
import { type FieldsProps, TextField } from './fields.tsx'
import { LimitFields } from './limit-fields.tsx'
import type { FormNames } from './rule-form.ts'

interface RuleFieldsProps extends FieldsProps {
  readonly names: FormNames
  /** True if the rule is new: only then it is given a name. */
  readonly isNew: boolean
}

/** Shows all fields of a rule. */
export function RuleFields({ names, isNew, ...fields }: RuleFieldsProps): JSX.Element {
  const { form: texts } = changeMessages.value
  const { form, set, mistakes } = fields
  const hasOutcomes = form.countWhen !== '' || form.resetWhen !== '' || form.block.kind !== 'none'
  return (
    <>
      <TextField
        label={texts.name}
        name="id"
        value={form.id}
        means={isNew ? texts.nameMeans : texts.nameFixed}
        mistakes={mistakes}
        onInput={id => set({ id })}
        input={{ maxLength: 64, disabled: !isNew }}
      />
      <CallFields {...fields} />
      <ByField {...fields} names={names} />
      <LimitFields {...fields} />
      <CountingFields {...fields} names={names} />
      <BeyondFields {...fields} />
      <details open={hasOutcomes}>
        <summary>{texts.more}</summary>
        <OutcomeFields {...fields} />
      </details>
    </>
  )
}
