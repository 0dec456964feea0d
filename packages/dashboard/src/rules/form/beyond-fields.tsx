import type { JSX } from 'preact'
import { changeMessages } from '../../i18n/changes/index.ts'
import { type FieldsProps, Group, Select, TextField } from './fields.tsx'
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
        <label class="inline">
          <span>{texts.waitFor}</span>
          <input
            value={waitFor}
            placeholder="1s"
            size={8}
            onInput={event => set({ waitFor: event.currentTarget.value })}
          />
        </label>
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
export function OutcomeFields({ form, set, mistakes }: FieldsProps): JSX.Element {
  const { form: texts } = changeMessages.value
  const { block } = form
  return (
    <>
      <TextField
        label={texts.countWhen}
        name="countWhen"
        value={form.countWhen}
        means={texts.countWhenMeans}
        mistakes={mistakes}
        onInput={countWhen => set({ countWhen })}
      />
      <TextField
        label={texts.resetWhen}
        name="resetWhen"
        value={form.resetWhen}
        means={texts.resetWhenMeans}
        mistakes={mistakes}
        onInput={resetWhen => set({ resetWhen })}
      />
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
          <label class="inline">
            <span>{block.kind === 'time' ? texts.blockFor : texts.blockFirst}</span>
            <input
              value={block.first}
              size={6}
              onInput={event => set({ block: { ...block, first: event.currentTarget.value } })}
            />
          </label>
        )}
        {block.kind === 'growing' && (
          <label class="inline">
            <span>{texts.blockMax}</span>
            <input
              value={block.max}
              size={6}
              placeholder="1d"
              onInput={event => set({ block: { ...block, max: event.currentTarget.value } })}
            />
          </label>
        )}
      </Group>
    </>
  )
}
