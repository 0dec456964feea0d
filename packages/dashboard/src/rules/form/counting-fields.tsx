import type { JSX } from 'preact'
import { changeMessages } from '../../i18n/changes/index.ts'
import { type FieldsProps, Group, Select, TextField } from './fields.tsx'
import { algorithmsFor, type FormNames, hasOption, isCalendar, levelsOf } from './rule-form.ts'

/** Shows the fields for the algorithm, with those that the algorithm and calendar periods need. */
export function CountingFields({ form, set, mistakes, names }: FieldsProps & { names: FormNames }): JSX.Element {
  const { form: texts } = changeMessages.value
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
      {hasOption(form, 'burst', names.algorithms) && (
        <TextField
          label={texts.burst}
          name="burst"
          value={form.burst}
          means={texts.burstMeans}
          mistakes={mistakes}
          onInput={burst => set({ burst })}
          input={{ inputMode: 'numeric' }}
        />
      )}
      {hasOption(form, 'warmUp', names.algorithms) && (
        <TextField
          label={texts.warmUp}
          name="warmUp"
          value={form.warmUp}
          means={texts.warmUpMeans}
          mistakes={mistakes}
          onInput={warmUp => set({ warmUp })}
        />
      )}
      {levelsOf(form).some(({ unit }) => isCalendar(unit)) && <Calendar form={form} set={set} mistakes={mistakes} />}
    </>
  )
}

function Calendar({ form, set, mistakes }: FieldsProps): JSX.Element {
  const { form: texts } = changeMessages.value
  const hasAnchor = levelsOf(form).some(({ unit }) => isCalendar(unit) && unit !== 'day') || form.anchor !== ''
  return (
    <>
      <TextField
        label={texts.zone}
        name="zone"
        value={form.zone}
        means={texts.zoneMeans}
        mistakes={mistakes}
        onInput={zone => set({ zone })}
        input={{ list: 'time-zones', placeholder: 'UTC' }}
      />
      <datalist id="time-zones">
        {Intl.supportedValuesOf('timeZone').map(zone => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      {hasAnchor && (
        <TextField
          label={texts.anchor}
          name="anchor"
          value={form.anchor}
          means={texts.anchorMeans}
          mistakes={mistakes}
          onInput={anchor => set({ anchor })}
        />
      )}
    </>
  )
}
