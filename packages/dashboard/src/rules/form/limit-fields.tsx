import type { JSX } from 'preact'
import { changeMessages } from '../../i18n/changes/index.ts'
import { type FieldsProps, Group, Select } from './fields.tsx'
import { isCalendar, type Level, type Plan, type RuleForm, UNITS } from './rule-form.ts'

const MOST_LEVELS = 8
const newLevel: Level = { count: '1000', every: '', unit: 'h' }

/** Shows the fields for the limits: one or more, or one for each plan. */
export function LimitFields(props: FieldsProps): JSX.Element {
  return props.form.plans === undefined ? <Levels {...props} /> : <Plans {...props} plans={props.form.plans} />
}

function Levels({ form: { levels }, set, mistakes }: FieldsProps): JSX.Element {
  const { form: texts } = changeMessages.value
  const isAtOnce = levels.some(({ unit }) => unit === 'at-once')
  return (
    <Group label={texts.limit} name="limit" mistakes={mistakes}>
      {levels.map((level, at) => (
        <div class="level" key={at}>
          <LevelInputs level={level} onChange={changed => set({ levels: replaced(levels, at, changed) })} />
          {levels.length > 1 && (
            <RemoveButton label={texts.removeLevel} onRemove={() => set({ levels: replaced(levels, at) })} />
          )}
        </div>
      ))}
      {!isAtOnce && levels.length < MOST_LEVELS && (
        <button type="button" class="quiet small" onClick={() => set({ levels: [...levels, newLevel] })}>
          {texts.addLevel}
        </button>
      )}
    </Group>
  )
}

interface PlansProps extends FieldsProps {
  readonly plans: NonNullable<RuleForm['plans']>
}

function Plans({ plans, set, mistakes }: PlansProps): JSX.Element {
  const { form: texts } = changeMessages.value
  const { by, values, standard } = plans
  const change = (part: Partial<PlansProps['plans']>) => set({ plans: { ...plans, ...part } })
  const changePlan = (at: number, part?: Partial<Plan>) =>
    change({ values: replaced(values, at, part && { ...values[at]!, ...part }) })
  return (
    <Group label={texts.limit} name="limit" means={texts.planByMeans} mistakes={mistakes}>
      <label class="inline">
        <span>{texts.planBy}</span>
        <input
          value={by}
          spellcheck={false}
          autocapitalize="off"
          onInput={event => change({ by: event.currentTarget.value })}
        />
      </label>
      {values.map(({ name, level }, at) => (
        <div class="level" key={at}>
          <input
            class="plan"
            value={name}
            aria-label={texts.plan}
            spellcheck={false}
            autocapitalize="off"
            onInput={event => changePlan(at, { name: event.currentTarget.value })}
          />
          <LevelInputs level={level} onChange={changed => changePlan(at, { level: changed })} />
          <RemoveButton label={texts.removePlan} onRemove={() => changePlan(at)} />
        </div>
      ))}
      <div class="level">
        <span class="plan">{texts.planStandard}</span>
        <LevelInputs level={standard} onChange={changed => change({ standard: changed })} />
      </div>
      <button
        type="button"
        class="quiet small"
        onClick={() => change({ values: [...values, { name: '', level: standard }] })}
      >
        {texts.addPlan}
      </button>
    </Group>
  )
}

function LevelInputs({ level, onChange }: { level: Level; onChange: (level: Level) => void }): JSX.Element {
  const { form: texts } = changeMessages.value
  const { count, every, unit } = level
  const hasEvery = unit !== 'at-once' && !isCalendar(unit)
  return (
    <>
      <input
        class="count"
        inputMode="numeric"
        value={count}
        aria-label={texts.count}
        onInput={event => onChange({ ...level, count: event.currentTarget.value })}
      />
      {unit !== 'at-once' && <span>{texts.per}</span>}
      {hasEvery && (
        <input
          class="every"
          inputMode="numeric"
          value={every}
          placeholder="1"
          aria-label={texts.every}
          onInput={event => onChange({ ...level, every: event.currentTarget.value })}
        />
      )}
      <Select
        label={texts.unit}
        value={unit}
        options={UNITS.map(one => [one, texts.units[one]])}
        onChoose={chosen => onChange({ ...level, unit: chosen })}
      />
    </>
  )
}

function RemoveButton({ label, onRemove }: { label: string; onRemove: () => void }): JSX.Element {
  return (
    <button type="button" class="quiet small" aria-label={label} title={label} onClick={onRemove}>
      ×
    </button>
  )
}

/** Returns a list with one item replaced, or removed. */
function replaced<Item>(items: readonly Item[], at: number, item?: Item): readonly Item[] {
  return [...items.slice(0, at), ...(item === undefined ? [] : [item]), ...items.slice(at + 1)]
}
