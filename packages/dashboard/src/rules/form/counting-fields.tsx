import type { JSX } from 'preact'
import { changeMessages } from '../../i18n/changes/index.ts'
import { type FieldsProps, FormText, Group, Select, TextField } from './fields.tsx'
import { algorithmsFor, type FormNames, isCalendar, levelsOf, type OwnOption, ownOptions } from './rule-form.ts'

/** Shows the fields for the algorithm, with those that the schema has for it, and those that calendar periods need. */
export function CountingFields({ names, ...fields }: FieldsProps & { names: FormNames }): JSX.Element {
  const { form: texts } = changeMessages.value
  const { form, set, mistakes } = fields
  const { algorithm } = form
  const known = algorithmsFor(form, names.algorithms)
  const choices = known.includes(algorithm) ? known : [...known, algorithm]
  return (
    <>
      <Group label={texts.algorithm} name="algorithm" means={texts.algorithms[algorithm] ?? ''} mistakes={mistakes}>
        <Select
          label={texts.algorithm}
          value={algorithm}
          options={choices.map(name => [name, name === '' ? texts.automatic : name])}
          onChoose={chosen => set({ algorithm: chosen })}
        />
      </Group>
      {ownOptions(form, names.algorithms).map(option => (
        <OwnField key={option.name} option={option} fields={fields} />
      ))}
      {levelsOf(form).some(({ unit }) => isCalendar(unit)) && <Calendar {...fields} />}
    </>
  )
}

/** Shows an option of the chosen algorithm, in the words of the page, or else of the schema. */
function OwnField({ option, fields }: { option: OwnOption; fields: FieldsProps }): JSX.Element {
  const { form: texts } = changeMessages.value
  const { form, set, mistakes } = fields
  const { name, description, values, isNumber } = option
  const [label, means] = texts.own[name] ?? [name, description]
  const about = { label, means, name: `own.${name}` as const, mistakes }
  const value = form.own[name] ?? ''
  const write = (text: string) => set({ own: { ...form.own, [name]: text } })
  if (values === undefined) {
    return <TextField {...about} value={value} onInput={write} {...(isNumber && { input: { inputMode: 'numeric' } })} />
  }
  return (
    <Group {...about}>
      <Select
        label={label}
        value={value}
        options={['', ...values].map(one => [one, one === '' ? texts.automatic : one])}
        onChoose={write}
      />
    </Group>
  )
}

function Calendar(fields: FieldsProps): JSX.Element {
  const { form: texts } = changeMessages.value
  const { form } = fields
  const hasAnchor = levelsOf(form).some(({ unit }) => isCalendar(unit) && unit !== 'day') || form.anchor !== ''
  return (
    <>
      <FormText
        name="zone"
        label={texts.zone}
        means={texts.zoneMeans}
        fields={fields}
        input={{ list: 'time-zones', placeholder: 'UTC' }}
      />
      <datalist id="time-zones">
        {Intl.supportedValuesOf('timeZone').map(zone => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      {hasAnchor && <FormText name="anchor" label={texts.anchor} means={texts.anchorMeans} fields={fields} />}
    </>
  )
}
