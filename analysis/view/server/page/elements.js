// Makes elements of the page.

/** An element with a class and a text. */
export function make(tag, classes = '', text) {
  const node = document.createElement(tag);
  if (classes) node.className = classes;
  if (text !== undefined) node.textContent = text;
  return node;
}
