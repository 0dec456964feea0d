import './form.css'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../api/api.ts'
import type { Rule, Where } from '../../api/generated.ts'
import type { AppliedChange } from '../../editor/applied.tsx'
import type { Schema } from '../../editor/schema-options.ts'
import { rules, status } from '../../figures/live.ts'
import { changeMessages } from '../../i18n/changes/index.ts'
import { Answered, useAnswer } from '../../parts/answer.tsx'
import { Sheet } from '../../parts/sheet.tsx'
import { hashOf } from '../../route.ts'
import { FormSheet } from './form-sheet.tsx'
import { readForm } from './read-form.ts'
import { type FormNames, withOptions } from './rule-form.ts'
import { formOf, TEMPLATES, type Template } from './templates.ts'

export interface RuleSheetProps {
  /** The rule to change; undefined to add one. */
  readonly rule: Rule | undefined
  readonly onApplied: (change: AppliedChange) => void
  readonly onBack: () => void
}

/** Adds a rule from a template, or changes one, by a form. */
export function RuleSheet({ rule, ...rest }: RuleSheetProps): JSX.Element {
  return rule === undefined ? <AddRule {...rest} /> : <ChangeRule {...rest} rule={rule} />
}

type Handlers = Omit<RuleSheetProps, 'rule'>

function AddRule(handlers: Handlers): JSX.Element {
  const { form: texts } = changeMessages.value
  const [template, setTemplate] = useState<Template | undefined>(undefined)
  const asked = useAnswer(readSetting, [])
  if (template !== undefined && asked.answer !== undefined) {
    const { names, places } = asked.answer
    const taken = new Set(rules.peek()?.map(({ id }) => id))
    return (
      <FormSheet
        title={`${texts.addTitle}: ${texts.templates[template]}`}
        start={formOf(template, taken, names.namedDimensions)}
        changed={undefined}
        places={places}
        names={names}
        onOther={() => setTemplate(undefined)}
        {...handlers}
      />
    )
  }
  return (
    <Sheet title={texts.addTitle} onBack={handlers.onBack}>
      <Answered asked={asked}>
        {({ places, reason }) =>
          places.length === 0 ? (
            <p class="notice degraded">
              {texts.notWritable} {reason}
            </p>
          ) : (
            <>
              <p>{texts.choose}</p>
              <div class="templates">
                {TEMPLATES.map(name => (
                  <button type="button" class="quiet" key={name} onClick={() => setTemplate(name)}>
                    <b>{texts.templates[name]}</b>
                    <span>{texts.templateMeans[name]}</span>
                  </button>
                ))}
              </div>
            </>
          )
        }
      </Answered>
      <div class="actions">
        <button type="button" class="quiet" onClick={handlers.onBack}>
          {texts.cancel}
        </button>
      </div>
    </Sheet>
  )
}

interface Setting {
  readonly names: FormNames
  /** The documents that can be written, the config center's first. */
  readonly places: readonly Where[]
  /** The reason why no document can be written. */
  readonly reason: string
}

async function readSetting(): Promise<Setting> {
  const hasCenter = status.peek()?.sources.some(({ role }) => role === 'remote') === true
  const all: readonly Where[] = hasCenter ? ['remote', 'local'] : ['local']
  const [names, ...documents] = await Promise.all([readNames(), ...all.map(readOrNot)])
  const places = all.filter((_, at) => documents[at]?.writable === true)
  return { names, places, reason: documents.map(document => document.reason ?? '').join(' ') }
}

/** Reads the names that rules may use, with the options that the schema has for each algorithm. */
async function readNames(): Promise<FormNames> {
  const [names, schema] = await Promise.all([api.names(), api.schema()])
  return withOptions(names, schema as Schema)
}

/** Reads a document; a config center that cannot be asked must not keep rules out of the local file. */
async function readOrNot(where: Where): Promise<{ readonly writable: boolean; readonly reason?: string | undefined }> {
  return api.document(where).catch(error => ({ writable: false, reason: String((error as Error).message) }))
}

function ChangeRule({ rule, ...handlers }: Handlers & { readonly rule: Rule }): JSX.Element {
  const { form: texts } = changeMessages.value
  const title = texts.changeTitle(rule.id)
  const asked = useAnswer(async () => {
    const [draft, names] = await Promise.all([api.draft(rule.where, rule.id, []), readNames()])
    return { draft, names }
  }, [rule.id])
  const read = asked.answer && readForm(asked.answer.draft.options, asked.answer.names.algorithms)
  if (read?.form !== undefined && asked.answer?.draft.base.writable === true) {
    const { draft, names } = asked.answer
    return (
      <FormSheet
        title={title}
        start={read.form}
        changed={{ id: rule.id, options: draft.options, others: read.others }}
        places={[rule.where]}
        names={names}
        {...handlers}
      />
    )
  }
  return (
    <Sheet title={title} onBack={handlers.onBack}>
      <Answered asked={asked}>
        {({ draft: { base } }) => (
          <p class="notice degraded">
            {base.writable
              ? texts.unreadable((read?.unreadable ?? []).join(', '))
              : `${texts.notWritable} ${base.reason}`}
          </p>
        )}
      </Answered>
      <div class="actions">
        <a class="button" href={hashOf('editor', rule.where, rule.id)}>
          {texts.asText}
        </a>
        <button type="button" class="quiet" onClick={handlers.onBack}>
          {texts.cancel}
        </button>
      </div>
    </Sheet>
  )
}
