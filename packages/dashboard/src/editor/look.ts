import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import type { Extension } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--code-key)', fontWeight: '600' },
  { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
  { tag: [tags.string, tags.content], color: 'var(--ink)' },
  { tag: [tags.punctuation, tags.separator, tags.brace, tags.squareBracket], color: 'var(--muted)' },
])

/** The looks of the editor, in the colors of the page; they come in through the shadow root as custom properties. */
export const look: Extension = [
  syntaxHighlighting(colours),
  EditorView.theme({
    '&': { color: 'var(--ink)', backgroundColor: 'var(--sheet)', fontSize: '0.875rem' },
    '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '-2px' },
    '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.6' },
    '.cm-content': { caretColor: 'var(--ink)', paddingBlock: '0.75rem' },
    '.cm-cursor': { borderLeftColor: 'var(--ink)' },
    '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--muted)', borderRight: '1px solid var(--line)' },
    '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--wash)' },
    '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
      backgroundColor: 'var(--selection)',
    },
    '.cm-tooltip': {
      backgroundColor: 'var(--sheet)',
      color: 'var(--ink)',
      border: '1px solid var(--line-strong)',
      borderRadius: '6px',
      boxShadow: 'var(--lift)',
    },
    '.cm-tooltip-autocomplete > ul > li': { padding: '0.2rem 0.6rem', fontFamily: 'var(--mono)' },
    '.cm-tooltip-autocomplete > ul > li[aria-selected]': {
      backgroundColor: 'var(--accent)',
      color: 'var(--on-accent)',
    },
    '.cm-completionInfo': { padding: '0.4rem 0.7rem', maxWidth: '18rem', fontFamily: 'var(--sans)' },
    '.cm-diagnostic': { padding: '0.4rem 0.7rem', fontFamily: 'var(--sans)', whiteSpace: 'pre-wrap' },
    '.cm-diagnostic-error': { borderLeft: '4px solid var(--refused)' },
    '.cm-lintRange-error': {
      backgroundImage: 'none',
      textDecoration: 'underline wavy var(--refused)',
      textUnderlineOffset: '3px',
    },
    '.cm-lint-marker-error': {
      content: 'none',
      borderRadius: '50%',
      background: 'var(--refused)',
      width: '0.6em',
      height: '0.6em',
    },
    '.cm-changedLine, .cm-insertedLine': { backgroundColor: 'var(--added)' },
    '.cm-changedText, .cm-insertedLine .cm-changedText': { background: 'var(--added-strong)' },
    '.cm-deletedChunk': { backgroundColor: 'var(--removed)' },
    '.cm-deletedChunk .cm-deletedText': { background: 'var(--removed-strong)' },
    '.cm-changeGutter': { width: '4px', paddingLeft: '0' },
    '&.cm-editor.cm-merge-b .cm-changedLineGutter': { background: 'var(--allowed)' },
    '&.cm-editor.cm-merge-b .cm-deletedLineGutter': { background: 'var(--refused)' },
    '&.cm-editor .cm-collapsedLines': { background: 'var(--wash)', color: 'var(--muted)', fontFamily: 'var(--sans)' },
    // the ornaments around it are in few fonts
    '&.cm-editor .cm-collapsedLines::before, &.cm-editor .cm-collapsedLines::after': { content: '""' },
  }),
]
