import type { ComponentChildren, InputHTMLAttributes, JSX } from 'preact'
import type { Field } from './field-of.ts'
import type { RuleForm } from './rule-form.ts'

/** The properties of every group of fields. */
export interface FieldsProps {
  readonly form: RuleForm
  readonly set: (part: Partial<RuleForm>) => void
  /** By the field they are shown beside. */
  readonly mistakes: ReadonlyMap<Field | undefined, readonly string[]>
}

interface TextFieldProps {
  readonly label: string
  /** Names the field for its mistakes. */
  readonly name: Field
  readonly value: string
  readonly means?: string
  readonly mistakes: FieldsProps['mistakes']
  readonly onInput: (text: string) => void
  readonly input?: InputHTMLAttributes<HTMLInputElement>
}

/** Shows a line of text with its label, its meaning, and the mistakes in it. */
export function TextField({ label, name, value, means, mistakes, onInput, input = {} }: TextFieldProps): JSX.Element {
  return (
    <div class="field" data-field={name}>
      <label>
        <span>{label}</span>
        <input
          value={value}
          spellcheck={false}
          autocapitalize="off"
          autocomplete="off"
          {...describedBy(name, means, mistakes)}
          onInput={event => onInput(event.currentTarget.value)}
          {...input}
        />
      </label>
      <Notes name={name} means={means} mistakes={mistakes} />
    </div>
  )
}

interface FormTextProps extends Pick<TextFieldProps, 'label' | 'means' | 'input'> {
  readonly name: 'countWhen' | 'resetWhen' | 'zone' | 'anchor'
  readonly fields: FieldsProps
}

/** Shows a part of the form that is one line of text. */
export function FormText({ name, fields: { form, set, mistakes }, ...rest }: FormTextProps): JSX.Element {
  return (
    <TextField {...rest} name={name} value={form[name]} mistakes={mistakes} onInput={text => set({ [name]: text })} />
  )
}

interface GroupProps {
  readonly label: string
  readonly name: Field
  readonly means?: string
  readonly mistakes: FieldsProps['mistakes']
  readonly children: ComponentChildren
}

/** Shows several inputs that belong together. */
export function Group({ label, name, means, mistakes, children }: GroupProps): JSX.Element {
  return (
    <fieldset class="field" data-field={name} {...describedBy(name, means, mistakes)}>
      <legend>{label}</legend>
      <div class="inputs">{children}</div>
      <Notes name={name} means={means} mistakes={mistakes} />
    </fieldset>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly isChosen: boolean
  readonly onChoose: (isChosen: boolean) => void
  readonly title?: string
}

/** Shows one of several things that may be chosen in any number. */
export function Choice({ label, isChosen, onChoose, title }: ChoiceProps): JSX.Element {
  return (
    <label class="choice" title={title}>
      <input type="checkbox" checked={isChosen} onChange={event => onChoose(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  )
}

interface SelectProps<Value extends string> {
  readonly label: string
  readonly value: Value
  readonly options: readonly (readonly [value: Value, text: string])[]
  readonly onChoose: (value: Value) => void
}

export function Select<Value extends string>({ label, value, options, onChoose }: SelectProps<Value>): JSX.Element {
  return (
    <select aria-label={label} value={value} onChange={event => onChoose(event.currentTarget.value as Value)}>
      {options.map(([one, text]) => (
        <option key={one} value={one}>
          {text}
        </option>
      ))}
    </select>
  )
}

interface InlineTextProps {
  readonly label: string
  readonly value: string
  readonly onInput: (text: string) => void
  readonly size: number
  readonly placeholder?: string
}

/** Shows a short text with its label in one line, inside a group. */
export function InlineText({ label, value, onInput, ...input }: InlineTextProps): JSX.Element {
  return (
    <label class="inline">
      <span>{label}</span>
      <input value={value} {...input} onInput={event => onInput(event.currentTarget.value)} />
    </label>
  )
}

interface NotesProps {
  readonly name: Field
  readonly means: string | undefined
  readonly mistakes: FieldsProps['mistakes']
}

export function Notes({ name, means, mistakes }: NotesProps): JSX.Element {
  const found = mistakes.get(name) ?? []
  return (
    <>
      {found.length > 0 && (
        <ul class="mistake" id={`${name}-mistake`}>
          {found.map(text => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
      {means !== undefined && (
        <p class="hush" id={`${name}-means`}>
          {means}
        </p>
      )}
    </>
  )
}

/** Ties an input to its explanation and its mistakes, for screen readers. */
export function describedBy(
  name: Field,
  means: string | undefined,
  mistakes: FieldsProps['mistakes'],
): { 'aria-describedby'?: string; 'aria-invalid'?: 'true' } {
  const isWrong = mistakes.has(name)
  const ids = [isWrong ? `${name}-mistake` : '', means === undefined ? '' : `${name}-means`].filter(id => id !== '')
  return {
    ...(ids.length > 0 && { 'aria-describedby': ids.join(' ') }),
    ...(isWrong && { 'aria-invalid': 'true' as const }),
  }
}
