import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { api } from '../api/api.ts'
import type { Mistake, RuleDocument, Where } from '../api/generated.ts'
import type { Problem } from '../api/problem.ts'
import { Applied, type AppliedChange } from '../editor/applied.tsx'
import { type CodeEditor, createCodeEditor } from '../editor/code-editor.ts'
import { drafts, isChanged } from '../editor/drafts.ts'
import { Review } from '../editor/review.tsx'
import type { Schema } from '../editor/schema-options.ts'
import { withoutChange } from '../editor/undo.tsx'
import { Versions } from '../editor/versions.tsx'
import { rules, status } from '../figures/live.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { Answered, problemOf, Refusal, useAnswer } from '../parts/answer.tsx'
import { shortName } from '../parts/short-name.ts'
import { hashOf, route } from '../route.ts'

/** Shows the rules as text: checked while they are written, compared with the rules in force, tried on recent traffic, then saved. */
export function Editor(): JSX.Element {
  const { editor: told } = viewMessages.value
  const where: Where = route.value.rest[0] === 'remote' ? 'remote' : 'local'
  const hasCenter = where === 'remote' || status.value?.sources.some(({ role }) => role === 'remote') === true
  const places: Where[] = hasCenter ? ['local', 'remote'] : ['local']
  // whenever the rules in force change, the document is read again
  const document = useAnswer(() => api.document(where).then(read => ({ ...read, where })), [where, rules.value])
  const schema = useAnswer(() => api.schema(), [])
  return (
    <>
      {places.length > 1 && (
        <nav class="places" aria-label={told.label}>
          {places.map(place => (
            <a key={place} href={hashOf('editor', place)} aria-current={place === where ? 'page' : undefined}>
              {told[place]}
            </a>
          ))}
        </nav>
      )}
      <Answered asked={document}>
        {read =>
          read.where === where &&
          (schema.answer ?? schema.problem) && (
            <AdminContext
              key={where}
              where={where}
              read={read}
              schema={schemaFor(where, schema.answer ?? {})}
              again={document.again}
            />
          )
        }
      </Answered>
    </>
  )
}

interface DeskProps {
  readonly where: Where
  readonly read: RuleDocument
  readonly schema: Schema
  readonly again: () => void
}

function AdminContext({ where, read, schema, again }: DeskProps): JSX.Element {
  const { editor: told } = viewMessages.value
  const keeper = drafts[where]
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<CodeEditor | undefined>(undefined)
  const mistakes = useSignal<readonly Mistake[] | undefined>(undefined)
  const [isReviewing, setReviewing] = useState(false)
  const [problem, setProblem] = useState<Problem | undefined>(undefined)
  const [applied, setApplied] = useState<AppliedChange | undefined>(undefined)
  if (keeper.draft.peek() === undefined) keeper.replace(read, read.text)
  const draft = keeper.draft.value!
  const changed = isChanged(draft)
  const canReview = changed && mistakes.value?.length === 0 && read.writable

  const undo = () =>
    withoutChange(applied!).then(
      ({ base, text }) => {
        keeper.replace(base, text)
        setReviewing(text !== base.text)
      },
      error => setProblem(problemOf(error)),
    )

  useEffect(() => {
    const { text } = keeper.draft.peek()!
    const code = createCodeEditor(host.current!, {
      text,
      label: told.label,
      isReadOnly: !read.writable,
      schema,
      check: async written => {
        mistakes.value = undefined
        const found = await api.check(where, written)
        // the answer is about another text than the one in the editor
        if (code.text === written) mistakes.value = found
        return found
      },
      onChange: written => {
        mistakes.value = undefined
        keeper.typed(written)
        if (isChanged(keeper.draft.peek())) setApplied(undefined)
      },
      onSave: () => setReviewing(isChanged(keeper.draft.peek()) && mistakes.peek()?.length === 0),
    })
    editor.current = code
    const line = lineOfRule(text, route.peek().rest[1])
    if (line > 0) code.goTo(line, 1)
    const detach = keeper.attach(written => code.setText(written))
    return () => {
      detach()
      code.close()
    }
  }, [])
  // a text that was not changed here follows what is in force; one that was changed waits for the operator to decide
  useEffect(() => {
    if (!isChanged(keeper.draft.peek())) keeper.replace(read, read.text)
  }, [read])

  return (
    <section class="panel context" aria-label={draft.base.name}>
      <div class="panel-head">
        <h2 title={draft.base.name}>{shortName(draft.base.name)}</h2>
        <p class={`hush ${changed ? 'unsaved' : ''}`}>{changed ? told.unsaved : told.unchanged}</p>
        <Applied text={applied ? told.saved : ''} onUndo={undo} />
      </div>
      {!read.writable && (
        <p class="notice degraded">
          {told.readOnly} {read.reason}
        </p>
      )}
      <div class="code" ref={host} />
      {problem && <Refusal problem={problem} />}
      <Mistakes mistakes={mistakes.value} onChoose={({ line, column }) => editor.current?.goTo(line, column)} />
      <div class="actions">
        <button type="button" disabled={!canReview} onClick={() => setReviewing(true)}>
          {told.review}
        </button>
        <button type="button" class="quiet" disabled={!changed} onClick={() => keeper.replace(read, read.text)}>
          {told.revert}
        </button>
        <p class="hush keys">{told.keys}</p>
      </div>
      <Versions
        where={where}
        version={read.version}
        onRollBack={earlier => {
          keeper.replace(read, earlier)
          setReviewing(earlier !== read.text)
        }}
      />
      {isReviewing && (
        <Review
          where={where}
          base={draft.base}
          text={draft.text}
          onMerged={(base, text) => keeper.replace(base, text)}
          onSaved={saved => {
            if (saved.text === draft.text) keeper.saved(saved)
            else keeper.replace(saved, saved.text)
            setReviewing(false)
            setApplied({ where, before: draft.base.text, after: saved.text })
            again()
          }}
          onBack={() => setReviewing(false)}
        />
      )}
    </section>
  )
}

interface MistakesProps {
  readonly mistakes: readonly Mistake[] | undefined
  readonly onChoose: (mistake: Mistake) => void
}

function Mistakes({ mistakes, onChoose }: MistakesProps): JSX.Element {
  const { editor: told } = viewMessages.value
  if (mistakes === undefined) return <p class="mistakes hush">{told.checking}</p>
  return (
    <div class="mistakes" role="status">
      <p class={mistakes.length === 0 ? 'well' : 'ill'}>
        {mistakes.length === 0 ? told.clean : told.mistakes(mistakes.length)}
      </p>
      <ul>
        {mistakes.slice(0, 50).map(mistake => (
          <li key={`${mistake.line}:${mistake.column}:${mistake.message}`}>
            <button type="button" class="link" onClick={() => onChoose(mistake)}>
              {told.line(mistake.line)}
            </button>{' '}
            {mistake.rule !== undefined && <code>{mistake.rule}</code>} {mistake.message}
          </li>
        ))}
      </ul>
    </div>
  )
}

function lineOfRule(text: string, rule: string | undefined): number {
  if (rule === undefined) return 0
  return text.split('\n').findIndex(line => /\bid:\s*["']?([\w.-]+)/.exec(line)?.[1] === rule) + 1
}

/** Returns the schema of a document: that of a config center has rules and nothing else. */
function schemaFor(where: Where, schema: Schema): Schema {
  if (where === 'local' || schema.properties?.rules === undefined) return schema
  return { ...schema, properties: { rules: schema.properties.rules } }
}
