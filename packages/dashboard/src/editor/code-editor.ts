import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentLess, insertTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, indentOnInput, indentUnit } from '@codemirror/language'
import { type Diagnostic, linter, lintGutter, lintKeymap } from '@codemirror/lint'
import { unifiedMergeView } from '@codemirror/merge'
import { EditorState, type Extension, type Text } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import type { Mistake } from '../api/generated.ts'
import { look } from './look.ts'
import { type Schema, suggest } from './schema-options.ts'
import { placeAt } from './yaml-place.ts'

export interface CodeEditor {
  readonly text: string
  setText(text: string): void
  goTo(line: number, column: number): void
  close(): void
}

export interface CodeEditorOptions {
  readonly text: string
  readonly label: string
  readonly isReadOnly: boolean
  readonly schema: Schema
  readonly check: (text: string) => Promise<readonly Mistake[]>
  readonly onChange: (text: string) => void
  /** Ctrl-S. */
  readonly onSave: () => void
}

const CHECK_AFTER_MS = 300

/**
 * Creates a YAML editor. It lives in a shadow root, where its styles are adopted style sheets: in the document they would be style
 * elements, which a strict Content-Security-Policy refuses.
 */
export function createCodeEditor(host: HTMLElement, options: CodeEditorOptions): CodeEditor {
  const { label, isReadOnly, schema, check, onChange, onSave } = options
  const save = () => {
    onSave()
    return true
  }
  const extensions = [
    lineNumbers(),
    history(),
    drawSelection(),
    indentOnInput(),
    indentUnit.of('  '),
    bracketMatching(),
    highlightActiveLine(),
    yaml(),
    look,
    autocompletion({ override: [completeBy(schema)] }),
    linter(
      async view => (await check(view.state.doc.toString())).map(mistake => diagnosticOf(mistake, view.state.doc)),
      {
        delay: CHECK_AFTER_MS,
      },
    ),
    lintGutter(),
    EditorState.readOnly.of(isReadOnly),
    EditorView.domEventHandlers({ beforeinput: replaceSelection }),
    EditorView.contentAttributes.of({ 'aria-label': label }),
    EditorView.updateListener.of(({ docChanged, state }) => {
      if (docChanged) onChange(state.doc.toString())
    }),
    keymap.of([
      { key: 'Mod-s', run: save, preventDefault: true },
      { key: 'Tab', run: insertTab, shift: indentLess },
      ...completionKeymap,
      ...lintKeymap,
      ...historyKeymap,
      ...defaultKeymap,
    ]),
  ]
  const view = open(host, options.text, extensions)
  return {
    get text() {
      return view.state.doc.toString()
    },
    setText(text) {
      // only what differs, so that the caret stays where it is
      const before = view.state.doc.toString()
      if (before === text) return
      const { from, to } = differingPart(before, text)
      view.dispatch({ changes: { from, to, insert: text.slice(from, text.length - (before.length - to)) } })
    },
    goTo(line, column) {
      const at = positionOf({ line, column }, view.state.doc)
      view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: 'center' }) })
      view.focus()
    },
    close: () => view.destroy(),
  }
}

export interface DiffOptions {
  readonly before: string
  readonly after: string
  readonly label: string
  /** Says how many lines are folded; $ is their number. */
  readonly unchanged: string
}

/** Shows what changes between two texts, the unchanged parts folded. */
export function showDiff(host: HTMLElement, texts: DiffOptions): () => void {
  const view = open(host, texts.after, [
    lineNumbers(),
    yaml(),
    look,
    EditorView.lineWrapping,
    EditorState.readOnly.of(true),
    EditorState.phrases.of({ '$ unchanged lines': texts.unchanged }),
    EditorView.contentAttributes.of({ 'aria-label': texts.label }),
    unifiedMergeView({
      original: texts.before,
      mergeControls: false,
      highlightChanges: true,
      collapseUnchanged: { margin: 2, minSize: 4 },
    }),
  ])
  return () => view.destroy()
}

function open(host: HTMLElement, text: string, extensions: Extension): EditorView {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' })
  const state = EditorState.create({ doc: text, extensions })
  return new EditorView({ state, parent: root, root })
}

/**
 * Returns true if it has put the text in place of the selection itself: Chromium would keep the looks of the old text in a style
 * attribute, which a strict policy refuses with an error in the console.
 */
function replaceSelection(event: InputEvent, view: EditorView): boolean {
  const { state } = view
  if (event.inputType !== 'insertText' || event.data === null || event.isComposing) return false
  if (state.readOnly || state.selection.main.empty) return false
  view.dispatch(state.update(state.replaceSelection(event.data), { userEvent: 'input.type', scrollIntoView: true }))
  event.preventDefault()
  return true
}

function diagnosticOf({ line, column, message, rule }: Mistake, text: Text): Diagnostic {
  const from = positionOf({ line, column }, text)
  const { to: end } = text.lineAt(from)
  const word = /^[^\s,\]}]+/.exec(text.sliceString(from, end))?.[0].length ?? 0
  return {
    from,
    to: Math.min(end, from + Math.max(1, word)),
    severity: 'error',
    message: rule === undefined ? message : `${rule}: ${message}`,
  }
}

function differingPart(before: string, after: string): { from: number; to: number } {
  const shorter = Math.min(before.length, after.length)
  let from = 0
  while (from < shorter && before[from] === after[from]) from++
  let same = 0
  while (same < shorter - from && before.at(-1 - same) === after.at(-1 - same)) same++
  return { from, to: before.length - same }
}

function positionOf({ line, column }: { line: number; column: number }, text: Text): number {
  const at = text.line(Math.min(Math.max(1, line || 1), text.lines))
  return Math.min(at.to, at.from + Math.max(0, (column || 1) - 1))
}

/** Completes keys and values by the schema of the rule file. */
function completeBy(schema: Schema): (context: CompletionContext) => CompletionResult | null {
  return context => {
    const place = placeAt(context.state.doc.toString(), context.pos)
    // a value is suggested as soon as its key is there; keys once one begins to write, or asks
    if (place.prefix === '' && !context.explicit && place.kind === 'key') return null
    const options = suggest(schema, place).map(({ label, description, kind }) => ({
      label,
      type: kind === 'key' ? 'property' : 'constant',
      apply: kind === 'key' ? `${label}: ` : label,
      ...(description === undefined ? {} : { info: description }),
    }))
    if (options.length === 0) return null
    return { from: context.pos - place.prefix.length, options, validFor: /^[\w.-]*$/ }
  }
}
