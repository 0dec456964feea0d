import type { JSX } from 'preact'
import { changeMessages } from '../../i18n/changes/index.ts'
import { type FieldsProps, FormText, Group, InlineText, Select } from './fields.tsx'
import type { Beyond, BlockKind } from './rule-form.ts'

const BEYONDS: readonly Beyond[] = ['refuse', 'wait', 'shadow']
const BLOCKS: readonly BlockKind[] = ['none', 'time', 'growing', 'manual']
const STATUSES = ['', '429', '503']

/** Shows the fields for calls beyond the limit. */
export function BeyondFields({ form, set, mistakes }: FieldsProps): JSX.Element {
  const { form: texts } = changeMessages.value
  const { beyond, status, waitFor } = form
  const statuses = STATUSES.includes(status) ? STATUSES : [...STATUSES, status]
  return (
    <Group
      label={texts.beyond}
      name="beyond"
      mistakes={mistakes}
      {...(beyond === 'wait' && { means: texts.waitForMeans })}
    >
      <Select
        label={texts.beyond}
        value={beyond}
        options={BEYONDS.map(one => [one, texts.beyonds[one]])}
        onChoose={chosen => set({ beyond: chosen })}
      />
      {beyond === 'wait' && (
        <InlineText
          label={texts.waitFor}
          value={waitFor}
          placeholder="1s"
          size={8}
          onInput={text => set({ waitFor: text })}
        />
      )}
      {beyond !== 'shadow' && (
        <span class="inline">
          <span>{texts.status}</span>
          <Select
            label={texts.status}
            value={status}
            options={statuses.map(one => [one, one === '' ? texts.statusStandard : one])}
            onChoose={chosen => set({ status: chosen })}
          />
        </span>
      )}
    </Group>
  )
}

/** Shows the fields for the outcomes that count or clear the count, and for blocks. */
export function OutcomeFields(fields: FieldsProps): JSX.Element {
  const { form: texts } = changeMessages.value
  const { form, set, mistakes } = fields
  const { block } = form
  return (
    <>
      <FormText name="countWhen" label={texts.countWhen} means={texts.countWhenMeans} fields={fields} />
      <FormText name="resetWhen" label={texts.resetWhen} means={texts.resetWhenMeans} fields={fields} />
      <Group label={texts.block} name="block" mistakes={mistakes}>
        <Select
          label={texts.block}
          value={block.kind}
          options={BLOCKS.map(kind => [kind, texts.blocks[kind]])}
          onChoose={kind =>
            set({ block: { kind, first: block.first || '10m', max: kind === 'growing' ? block.max : '' } })
          }
        />
        {(block.kind === 'time' || block.kind === 'growing') && (
          <InlineText
            label={block.kind === 'time' ? texts.blockFor : texts.blockFirst}
            value={block.first}
            size={6}
            onInput={first => set({ block: { ...block, first } })}
          />
        )}
        {block.kind === 'growing' && (
          <InlineText
            label={texts.blockMax}
            value={block.max}
            size={6}
            placeholder="1d"
            onInput={max => set({ block: { ...block, max } })}
          />
        )}
      </Group>
    </>
  )
}
