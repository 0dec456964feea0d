import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { RuleNames } from '../../api/generated.ts'
import { changeMessages } from '../../i18n/changes/index.ts'
import { Choice, describedBy, type FieldsProps, Group, Notes } from './fields.tsx'
import { METHODS } from './rule-form.ts'

/** Shows the fields for the calls that the rule applies to. */
export function CallFields({ form, set, mistakes }: FieldsProps): JSX.Element {
  const { form: texts } = changeMessages.value
  const { paths, methods } = form
  const choices = [...METHODS, ...methods.filter(method => !METHODS.includes(method))]
  return (
    <>
      <div class="field" data-field="paths">
        <label>
          <span>{texts.paths}</span>
          <textarea
            rows={Math.max(1, paths.split('\n').length)}
            spellcheck={false}
            autocapitalize="off"
            value={paths}
            placeholder="/orders/**"
            {...describedBy('paths', texts.pathsMean, mistakes)}
            onInput={event => set({ paths: event.currentTarget.value })}
          />
        </label>
        <Notes name="paths" means={texts.pathsMean} mistakes={mistakes} />
      </div>
      <Group label={texts.methods} name="methods" means={texts.methodsMean} mistakes={mistakes}>
        {choices.map(method => (
          <Choice
            key={method}
            label={method}
            isChosen={methods.includes(method)}
            onChoose={isChosen => set({ methods: chosen(methods, method, isChosen) })}
          />
        ))}
      </Group>
    </>
  )
}

interface ByFieldProps extends FieldsProps {
  readonly names: RuleNames
}

/** Shows the field for the key that calls are counted by: dimensions that the gateway knows, and others by their names. */
export function ByField({ form, set, mistakes, names }: ByFieldProps): JSX.Element {
  const { form: texts } = changeMessages.value
  const { by } = form
  const known = by.filter(name => names.dimensions.includes(name))
  const [others, setOthers] = useState(by.filter(name => !names.dimensions.includes(name)).join(', '))
  const means = texts.byOtherMeans(names.namedDimensions.map(name => `${name}:`).join(', '))
  return (
    <Group label={texts.by} name="by" means={texts.byMeans} mistakes={mistakes}>
      {names.dimensions.map(name => (
        <Choice
          key={name}
          label={texts.byNames[name] ?? name}
          title={name}
          isChosen={by.includes(name)}
          onChoose={isChosen => set({ by: [...chosen(known, name, isChosen), ...wordsIn(others)] })}
        />
      ))}
      <label class="inline" title={means}>
        <span>{texts.byOther}</span>
        <input
          value={others}
          placeholder="header:x-api-key"
          spellcheck={false}
          autocapitalize="off"
          onInput={event => {
            setOthers(event.currentTarget.value)
            set({ by: [...known, ...wordsIn(event.currentTarget.value)] })
          }}
        />
      </label>
    </Group>
  )
}

function chosen(all: readonly string[], one: string, isChosen: boolean): readonly string[] {
  return isChosen ? [...all, one] : all.filter(other => other !== one)
}

function wordsIn(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter(word => word !== '')
}
